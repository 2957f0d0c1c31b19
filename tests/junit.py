#!/usr/bin/python3
"""Lists the rules in the test names of JUnit reports, by file, with their results. Then prints "passed failed skipped".

A parametrised test is listed once, with the number of its cases. A missing or empty report is one failure.
With --why as the first word it prints the end of the message of each failed case instead.
"""
import collections
import sys
import xml.etree.ElementTree


def cases(path):
    try:
        return list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return []


def outcome(case):
    for word, tag in (("FAILED", "failure"), ("FAILED", "error"), ("skipped", "skipped")):
        if case.find(tag) is not None:
            return word
    return "ok"


def why(reports):
    for report in reports:
        found = cases(report)
        if not found:
            print(f"{report}: no report")
        for case in found:
            for problem in (*case.iter("failure"), *case.iter("error")):
                lines = (problem.text or problem.get("message") or "").splitlines()
                print(f"FAILED {case.get('classname').split('.')[-1]}::{case.get('name')}")
                print("\n".join(f"    {line[:400]}" for line in lines[-25:]))


def main():
    if sys.argv[1:2] == ["--why"]:
        return why(sys.argv[2:])
    rules, numbers = collections.defaultdict(list), collections.Counter()
    for report in sys.argv[1:]:
        found = cases(report)
        numbers["FAILED"] += not found
        for case in found:
            rule = case.get("name").split("[")[0].removeprefix("test_").replace("_", " ")
            rules[case.get("classname").split(".")[-1], rule].append(outcome(case))
            numbers[outcome(case)] += 1
    last = None
    # Parallel sessions mix the files.
    for (file, rule), outcomes in sorted(rules.items(), key=lambda item: item[0][0]):
        if file != last:
            print(f"  {file}")
            last = file
        worst = next((word for word in ("FAILED", "skipped") if word in outcomes), "ok")
        print(f"    {worst:<8}{rule}{f' ({len(outcomes)} cases)' if len(outcomes) > 1 else ''}")
    print(numbers["ok"], numbers["FAILED"], numbers["skipped"])


if __name__ == "__main__":
    main()

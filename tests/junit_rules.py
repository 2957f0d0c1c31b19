#!/usr/bin/python3
"""Lists the rules in the test names of JUnit reports, by file, with their results.

A parametrised test is listed once, with the number of its cases.
"""
import collections
import os
import sys
import xml.etree.ElementTree


def outcome(case):
    for word, tag in (("FAILED", "failure"), ("FAILED", "error"), ("skipped", "skipped")):
        if case.find(tag) is not None:
            return word
    return "ok"


def main():
    rules = collections.OrderedDict()
    for report in filter(os.path.exists, sys.argv[1:]):
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            rule = case.get("name").split("[")[0].removeprefix("test_").replace("_", " ")
            rules.setdefault((case.get("classname").split(".")[-1], rule), []).append(outcome(case))
    last = None
    # Parallel sessions mix the files.
    for (file, rule), outcomes in sorted(rules.items(), key=lambda item: item[0][0]):
        if file != last:
            print(f"  {file}")
            last = file
        worst = next((word for word in ("FAILED", "skipped") if word in outcomes), "ok")
        print(f"    {worst:<8}{rule}{f' ({len(outcomes)} cases)' if len(outcomes) > 1 else ''}")


if __name__ == "__main__":
    main()

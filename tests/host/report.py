"""Prints a line for each check and counts the checks."""
import sys
import time
import traceback


class Stop(Exception):
    """A part cannot go on."""


class Report:
    def __init__(self):
        self.passed, self.failed, self.begun = 0, 0, time.monotonic()

    def check(self, name, act, *words, **more):
        """Runs one check; returns its result, or None if it failed."""
        begun = time.monotonic()
        try:
            result = act(*words, **more)
            self.passed += 1
            print(f"ok      {name} ({time.monotonic() - begun:.1f} s)", flush=True)
            return result
        except Exception as error:
            self.failed += 1
            print(f"NOT OK  {name} ({time.monotonic() - begun:.1f} s)", flush=True)
            lines = str(error) or repr(error)
            if not isinstance(error, AssertionError) and type(error).__module__ == "builtins":
                lines = traceback.format_exc()
            for line in lines.splitlines()[-40:]:
                print("        " + line[:400], flush=True)
            return None

    def must(self, name, act, *words, **more):
        """Runs a check without which the following checks make no sense."""
        failed = self.failed
        result = self.check(name, act, *words, **more)
        if self.failed > failed:
            raise Stop(name)
        return result

    def tell(self, text):
        for line in text.splitlines():
            print("        | " + line, flush=True)
        sys.stdout.flush()

    def closing(self):
        return f"in {time.monotonic() - self.begun:.0f} s:\n{self.passed} passed, {self.failed} failed"

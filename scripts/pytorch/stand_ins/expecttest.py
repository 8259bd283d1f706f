"""Stands in for the module expecttest, which Debian 12 lacks, as far as PyTorch's tests use it."""
import textwrap
import unittest

ACCEPT = False


class TestCase(unittest.TestCase):
    longMessage = True

    def assertExpectedInline(self, actual, expect, skip=0):
        self.assertMultiLineEqual(textwrap.dedent(expect), actual)

    def assertExpectedRaisesInline(self, kind, function, expect, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            function(*args, **kwargs)
        self.assertExpectedInline(str(caught.exception), expect)

"""Tests of `rmqlb.remoting`."""

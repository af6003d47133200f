"""Helpers that several plugins share; they know no plugin."""

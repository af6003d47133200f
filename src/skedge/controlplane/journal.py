"""The state on disk: SQLite in WAL mode, one transaction a flush.

Two tables: `objects`, the present, and `log`, the last writes with the state before each, so that watches resume
after a restart. What a flush committed survives the end of the process; the revision counter never goes back.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from skedge.controlplane.selectors import selectable_values
from skedge.controlplane.store import DELETED, Change, Store, Stored, decode

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects
  (storage TEXT, key TEXT, raw BLOB NOT NULL, PRIMARY KEY (storage, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (revision INTEGER PRIMARY KEY, storage TEXT, type TEXT, raw BLOB NOT NULL, before BLOB);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_TRIM_EVERY = 2_000
_PATIENCE = 2.0  # seconds to wait for a process that is ending


class SqliteJournal:
    """A store's journal in `directory/state.db`. Keeps the last `history` writes for resuming watches.

    The file belongs to one process at a time. Raises OSError naming the file where it cannot be used.
    """

    def __init__(self, directory: Path, history: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "state.db"
        try:
            self._db = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            why = "another process uses it" if "locked" in str(error) else str(error)
            raise OSError(f"{path}: {why}") from None
        self._history = history
        self._pending: list[tuple[str, Change]] = []
        self._written = 0

    def record(self, storage: str, change: Change) -> None:
        """Take one write."""
        self._pending.append((storage, change))

    def commit(self) -> None:
        """Write everything taken so far in one transaction."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        db = self._db
        last = pending[-1][1].revision
        db.execute("BEGIN")
        try:
            db.executemany(
                "INSERT INTO log VALUES (?, ?, ?, ?, ?)",
                [(c.revision, s, c.type, c.current.raw, c.previous.raw if c.previous else None) for s, c in pending],
            )
            for storage, change in pending:
                if change.type == DELETED:
                    db.execute("DELETE FROM objects WHERE storage = ? AND key = ?", (storage, change.current.key))
                else:
                    values = (storage, change.current.key, change.current.raw)
                    db.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", values)
            db.execute("INSERT OR REPLACE INTO state VALUES ('revision', ?)", (last,))
            self._written += len(pending)
            if self._written >= min(_TRIM_EVERY, self._history):
                self._written = 0
                db.execute("DELETE FROM log WHERE revision <= ?", (last - self._history,))
            db.execute("COMMIT")
        except sqlite3.Error:
            self._pending = pending + self._pending
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def restore(self, store: Store) -> None:
        """Fill an empty store with what is on disk."""
        row = self._db.execute("SELECT value FROM state WHERE name = 'revision'").fetchone()
        if row is None:
            return
        objects = (
            (storage, _stored(store, storage, raw))
            for storage, raw in self._db.execute("SELECT storage, raw FROM objects")
        )
        log = (
            (storage, Change(type, _stored(store, storage, raw), _stored(store, storage, before) if before else None))
            for storage, type, raw, before in self._db.execute(
                "SELECT storage, type, raw, before FROM log ORDER BY revision"
            )
        )
        store.restore(int(row[0]), objects, log)

    def close(self) -> None:
        """Write what is left and let go of the file."""
        self.commit()
        self._db.close()


def _stored(store: Store, storage: str, raw: bytes) -> Stored:
    obj = decode(raw)
    meta = obj["metadata"]
    return Stored(
        meta.get("namespace", ""),
        meta["name"],
        meta.get("uid", ""),
        int(meta["resourceVersion"]),
        raw,
        store.intern(meta.get("labels")),
        selectable_values(storage, obj),
    )

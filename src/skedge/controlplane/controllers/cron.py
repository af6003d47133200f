"""Cron schedules: five fields, or one of the @names. Upstream: `robfig/cron/v3`, as CronJobs use it, with its words."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_HORIZON = 5 * 366
"""Days searched for the next time: one that never comes (30 February) is found out."""


class CronError(ValueError):
    """The text is no schedule; the message shows what is wrong."""


class Schedule:
    """`next` and `latest` speak of whole minutes in the time zone of the moments they are given."""

    def __init__(self, text: str) -> None:
        if text.startswith("@") and text not in _NAMED:
            raise CronError(f"unrecognized descriptor: {text}")
        fields = _NAMED.get(text, text).split()
        if len(fields) != 5:
            raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
        sets = [_parse(field, *which) for field, which in zip(fields, _FIELDS, strict=True)]
        self._minutes, self._hours = sorted(sets[0]), sorted(sets[1])
        self._days, self._months = sets[2], sets[3]
        self._weekdays = sets[4]
        # With both days restricted either will do.
        self._any_day, self._any_weekday = fields[2][0] in "*?", fields[4][0] in "*?"

    def next(self, after: datetime) -> datetime | None:
        """The first time later than a moment."""
        start = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for offset in range(_HORIZON):
            day = start + timedelta(days=offset)
            if self._matches_day(day):
                earliest = (start.hour, start.minute) if offset == 0 else (0, 0)
                for hour in self._hours:
                    for minute in self._minutes:
                        if (hour, minute) >= earliest:
                            return _at(day, hour, minute, after.tzinfo)
        return None

    def latest(self, until: datetime, after: datetime) -> datetime | None:
        """The last time not later than `until`, if it is later than `after`."""
        for offset in range(max(0, (until.date() - after.date()).days) + 1):
            day = until - timedelta(days=offset)
            if self._matches_day(day):
                limit = (until.hour, until.minute) if offset == 0 else (23, 59)
                for hour in reversed(self._hours):
                    for minute in reversed(self._minutes):
                        if (hour, minute) <= limit:
                            found = _at(day, hour, minute, until.tzinfo)
                            return found if found > after else None
        return None

    def _matches_day(self, day: datetime) -> bool:
        if day.month not in self._months:
            return False
        by_month, by_week = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        return by_month and by_week if self._any_day or self._any_weekday else by_month or by_week


def _at(day: datetime, hour: int, minute: int, zone: tzinfo | None) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)


def _parse(text: str, least: int, most: int, names: tuple[str, ...]) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        span, *steps = part.split("/")
        first_text, *rest = span.split("-")
        if first_text in ("*", "?"):
            first, last = least, most
        else:
            first = _number(first_text, names)
            if len(rest) > 1:
                raise CronError(f"too many hyphens: {part}")
            last = _number(rest[0], names) if rest else (most if steps else first)
        if len(steps) > 1:
            raise CronError(f"too many slashes: {part}")
        step = _number(steps[0], ()) if steps else 1
        if first < least:
            raise CronError(f"beginning of range ({first}) below minimum ({least}): {part}")
        if last > most:
            raise CronError(f"end of range ({last}) above maximum ({most}): {part}")
        if first > last:
            raise CronError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
        if step == 0:
            raise CronError(f"step of range should be a positive number: {part}")
        found.update(range(first, last + 1, step))
    return found


def _number(text: str, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + (1 if names is _MONTHS else 0)
    if not (text.isascii() and text.isdigit()):
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)

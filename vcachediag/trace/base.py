"""What all records of a trace have in common."""

from typing import Literal

import msgspec

LaneName = Literal["cached", "reference", "reference-2", "decode"]


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of everything in a trace."""

    #: When it was written: nanoseconds of the system's monotonic clock, the same for all
    #: processes of a machine. The writer sets it; it orders the records of several processes.
    at: int = 0

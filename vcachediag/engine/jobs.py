"""What the command process and the engine process say to each other; no vLLM here."""

from typing import Literal

import msgspec

from vcachediag.requests import RequestFile
from vcachediag.trace.records import LaneName

Cache = Literal["prefix", "encoder", "processor"]


class LaneSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One condition under which the requests run."""

    name: LaneName
    #: How often the whole sequence is sent.
    repeat: int = 1
    reverse: bool = False
    reads_prefix_cache: bool = False
    #: Emptied before each request.
    emptied: tuple[Cache, ...] = ("prefix", "encoder", "processor")
    #: Steps are limited to the user's own token budget; otherwise every prompt runs whole.
    user_budget: bool = False
    #: Prompts are followed by the output of the `reference` lane, and one token is generated.
    append_reference_output: bool = False


CACHED = LaneSpec(name="cached", repeat=2, reads_prefix_cache=True, emptied=(), user_budget=True)
REFERENCE = LaneSpec(name="reference")
REFERENCE_2 = LaneSpec(name="reference-2", reverse=True)
DECODE = LaneSpec(name="decode", append_reference_output=True)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the engine process is told at its start."""

    trace: str
    requests: RequestFile
    #: `--plugin` specs.
    plugins: tuple[str, ...]
    #: The user's `vllm serve` flags, model first.
    engine_arguments: tuple[str, ...]
    max_tokens: int
    #: Put the hooks in; without them only outcomes are recorded.
    watch: bool = True
    #: Leave out what prompts say: see `trace.redact`.
    redact: bool = False


class RunLane(msgspec.Struct, frozen=True, kw_only=True, tag="run-lane"):
    """Run a lane."""

    spec: LaneSpec


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """End the engine process."""


Command = RunLane | Stop


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The engine runs."""

    seconds: float


class Stage(msgspec.Struct, frozen=True, kw_only=True, tag="stage"):
    """What the engine process is doing now, in words."""

    doing: str


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """So many runs of a lane are done."""

    lane: str
    done: int
    total: int


class LaneDone(msgspec.Struct, frozen=True, kw_only=True, tag="lane-done"):
    """A lane is complete."""

    lane: str


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The engine process gives up."""

    exit_code: int
    message: str
    cause: str | None = None
    hint: str | None = None
    #: For `--debug`.
    traceback: str = ""


Reply = Ready | Stage | Progress | LaneDone | Failed

"""Sees every row of logits before sampling."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from vcachediag.engine.hooks.digest import checksum, sketch
from vcachediag.engine.hooks.patch import wrap
from vcachediag.trace.records import LogitsRecord, StopLogit

HOOK: Final = "logits"
TOP = 20


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of logits that waits for the token chosen from it."""

    top_ids: tuple[int, ...]
    top_logits: tuple[float, ...]
    stops: tuple[StopLogit, ...]
    digest: str
    sketch: tuple[float, ...]
    max_abs: float
    norm: float
    vocabulary: int
    num_neg_inf: int
    num_nan: int

    def record(self, *, run: str, index: int, chosen: int,
               decode: Callable[[int], str]) -> LogitsRecord:
        """The record of this row, now that the choice is known."""
        margin = self.top_logits[0] - self.top_logits[1] if len(self.top_logits) > 1 else 0.0
        return LogitsRecord(
            run=run, index=index, chosen=chosen, chosen_text=decode(chosen),
            top_ids=self.top_ids, top_logits=self.top_logits,
            top_texts=tuple(decode(token) for token in self.top_ids),
            margin=margin, stops=self.stops, digest=self.digest, sketch=self.sketch,
            max_abs=self.max_abs, norm=self.norm, vocabulary=self.vocabulary,
            num_neg_inf=self.num_neg_inf, num_nan=self.num_nan)


def summarise(logits: torch.Tensor, stop_ids: tuple[int, ...]) -> Row:
    """One row `[vocabulary]`, any float type, as what the trace keeps of it."""
    row = logits.detach().to(torch.float32)
    finite = torch.where(torch.isfinite(row), row, torch.zeros_like(row))
    top = torch.where(torch.isfinite(row), row, -torch.inf).topk(min(TOP, row.numel()))
    kept = [(i, v) for i, v in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            if v != -torch.inf]
    return Row(
        top_ids=tuple(i for i, _ in kept), top_logits=tuple(v for _, v in kept),
        stops=tuple(_stop(row, token) for token in stop_ids if token < row.numel()),
        digest=checksum(row), sketch=sketch(finite),
        max_abs=float(finite.abs().max()), norm=float(finite.double().norm()),
        vocabulary=row.numel(), num_neg_inf=int(torch.isneginf(row).sum()),
        num_nan=int(torch.isnan(row).sum()))


def _stop(row: torch.Tensor, token: int) -> StopLogit:
    value = float(row[token])
    finite = value == value and abs(value) != float("inf")
    return StopLogit(token_id=token, logit=value if finite else None,
                     rank=int((row > row[token]).sum()) + 1)


def install(model: Any, see: Callable[[torch.Tensor], None]) -> None:
    """Show each result of `model.compute_logits` to `see`, on this instance only.

    Installed after the engine has warmed up, so that dummy passes are not seen.
    """
    def after(logits: Any, *_args: Any, **_kwargs: Any) -> None:
        if isinstance(logits, torch.Tensor):
            see(logits)

    wrap(model, "compute_logits", after=after)

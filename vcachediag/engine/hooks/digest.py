"""Rows made small: an exact checksum, and a sketch that tells how far two rows are apart.

The checksum is the sum of bits_i x w_i modulo 2^64, the row taken as integers and w_i fixed odd
64-bit weights, so that it depends on neither reduction order nor batch shape. The sketch holds
products with fixed vectors of signs: for rows x and y, the mean of (sketch(x) - sketch(y))^2
estimates |x - y|^2 (Johnson and Lindenstrauss, with signs as in Achlioptas 2003).
Weights and signs come from splitmix64 of the index and belong to trace schema 1.
"""

from functools import lru_cache

import numpy as np
import torch

SKETCH_SIZE = 16
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SIGN_SEED = 0x5EED


def _splitmix64(start: int, count: int) -> np.ndarray:
    """`[count]` uint64: splitmix64 (Steele, Lea and Flood 2014) of start, start + 1, ..."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(start)) * np.uint64(
            0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


@lru_cache(maxsize=32)
def _weights(count: int, device: torch.device) -> torch.Tensor:
    """`[count]` int64, odd."""
    bits = (_splitmix64(0, count) | np.uint64(1)).view(np.int64)
    return torch.from_numpy(bits).to(device)


@lru_cache(maxsize=8)
def _signs(count: int, device: torch.device) -> torch.Tensor:
    """`[SKETCH_SIZE, count]` float32, each -1 or 1."""
    words = _splitmix64(_SIGN_SEED << 32, count)
    planes = [(words >> np.uint64(bit)) & np.uint64(1) for bit in range(SKETCH_SIZE)]
    signs = np.stack(planes).astype(np.float32) * 2.0 - 1.0
    return torch.from_numpy(signs).to(device)


def checksum(row: torch.Tensor) -> str:
    """16 hex digits of a tensor's bits; equal ones, and in practice only those, are equal."""
    bits = _bits(row).reshape(-1)
    total = int((bits * _weights_for(bits)).sum().item())
    return f"{total & 0xFFFFFFFFFFFFFFFF:016x}"


def checksum_of_rows(rows: torch.Tensor) -> str:
    """The checksum of the checksums of rows `[n, width]`: needs weights for one row only."""
    weights = _weights_for(rows[0])
    # In pieces: the bits take eight bytes each.
    totals = [(_bits(piece) * weights).sum(dim=1) for piece in rows.split(512)]
    return checksum(torch.cat(totals))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bits as signed integers of the tensor's own width, in int64."""
    return tensor.contiguous().view(_INTEGERS[tensor.element_size()]).to(torch.int64)


def _weights_for(row: torch.Tensor) -> torch.Tensor:
    # Rounded up to a power of two: lengths that change with every step share their weights.
    size = 1 << max(row.numel() - 1, 0).bit_length()
    return _weights(size, row.device)[:row.numel()]


def sketch(row: torch.Tensor) -> tuple[float, ...]:
    """`SKETCH_SIZE` products of a finite row `[n]` with the sign vectors, summed in float64."""
    signs = _signs(row.numel(), row.device)
    products = (signs * row).sum(dim=1, dtype=torch.float64)
    return tuple(products.tolist())

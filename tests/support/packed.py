"""A quantized weight as libraries make them: a tensor that consists of others, in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

aten = torch.ops.aten


class Packed(torch.Tensor):
    """A matrix in int8 with a scale for each row; a linear layer casts it up to multiply."""

    numbers: torch.Tensor
    scales: torch.Tensor

    def __new__(cls, numbers: torch.Tensor, scales: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, numbers.shape, dtype=scales.dtype, device=numbers.device
        )

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        self.numbers, self.scales = numbers, scales

    @classmethod
    def of(cls, weight: torch.Tensor) -> Packed:
        scales = weight.detach().abs().amax(dim=1, keepdim=True) / 127
        return cls((weight.detach() / scales).round().to(torch.int8), scales)

    def unpacked(self) -> torch.Tensor:
        return self.numbers.to(self.scales.dtype) * self.scales

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Packed({tuple(self.shape)})"

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["numbers", "scales"], None

    @staticmethod
    def __tensor_unflatten__(parts: Mapping[str, torch.Tensor], *_: Any) -> Packed:
        return Packed(parts["numbers"], parts["scales"])

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is torch.nn.functional.linear:
            inputs, weight = args[:2]
            return torch.mm(inputs, weight.unpacked().t())
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        packed = args[0]
        if func is aten.detach.default:
            return Packed(packed.numbers.detach(), packed.scales.detach())
        if func is aten._to_copy.default:  # torchao moves its parts like this
            device = (kwargs or {}).get("device", packed.device)
            return Packed(packed.numbers.to(device), packed.scales.to(device))
        raise NotImplementedError(f"{func} of a packed weight")


def pack(layer: torch.nn.Linear) -> torch.nn.Linear:
    """Store the weight of a layer packed."""
    layer.weight = torch.nn.Parameter(Packed.of(layer.weight), requires_grad=False)
    return layer

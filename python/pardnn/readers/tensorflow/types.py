"""TensorFlow's element types: their numbers in files and bytes per element."""

from __future__ import annotations

# In the order of tensorflow/core/framework/types.proto, from 0.
_NAMES = """
    DT_INVALID DT_FLOAT DT_DOUBLE DT_INT32 DT_UINT8 DT_INT16 DT_INT8 DT_STRING DT_COMPLEX64 DT_INT64
    DT_BOOL DT_QINT8 DT_QUINT8 DT_QINT32 DT_BFLOAT16 DT_QINT16 DT_QUINT16 DT_UINT16 DT_COMPLEX128
    DT_HALF DT_RESOURCE DT_VARIANT DT_UINT32 DT_UINT64 DT_FLOAT8_E5M2 DT_FLOAT8_E4M3FN
    """.split()  # noqa: SIM905
_REF = 100

TYPE_NUMBERS = {name: number for number, name in enumerate(_NAMES)} | {
    f"{name}_REF": _REF + number for number, name in enumerate(_NAMES) if number
}

FLOAT, INT32, STRING, INT64, BOOL, RESOURCE, VARIANT = (
    TYPE_NUMBERS[f"DT_{name}"]
    for name in ("FLOAT", "INT32", "STRING", "INT64", "BOOL", "RESOURCE", "VARIANT")
)
HANDLES = frozenset({RESOURCE, VARIANT})

# A string without what it holds, as TensorFlow's allocators count it.
_STRING = 24
_BYTES = dict(
    zip(
        range(1, len(_NAMES)),
        (4, 8, 4, 1, 2, 1, _STRING, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, None, None, 4, 8, 1, 1),
        strict=True,
    )
)


def plain(dtype: int) -> int:
    """The type without the mark of a reference."""
    return dtype - _REF if dtype > _REF else dtype


def item_bytes(dtype: int) -> int | None:
    """Bytes of one element; None for handles and types that are not known."""
    return _BYTES.get(plain(dtype))

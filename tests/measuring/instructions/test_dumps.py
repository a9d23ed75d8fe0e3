"""Callgrind's files, from small texts: who executed what, and which group that is."""

from __future__ import annotations

from collections import Counter

import pytest

from fixtures.measuring.instructions.dumps import (
    GENERATED,
    MOST_FUNCTIONS,
    MOST_LETTERS,
    group_of,
    grouped,
    largest,
    read_dump,
    short_name,
)
from fixtures.records.instructions import (
    ALLOCATOR,
    COPIES,
    KERNELS,
    LOOKUPS,
    NATIVE,
    PYTHON,
)

DUMP = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 4711
desc: Trigger: Client Request: counted
positions: line
events: Ir
summary: 1234

ob=(1) /opt/python/bin/python3.11
fl=(1) ???
fn=(1) _PyEval_EvalFrameDefault
0 100
cob=(2) /opt/torch/lib/libtorch_cpu.so
cfi=(2) ???
cfn=(2) at::native::add
calls=3 0
0 5000
+2 7

fn=(3) _PyObject_Malloc
* 11

ob=(2)
fl=(2)
fn=(2)
0 900
-1 60

ob=(3) /lib/x86_64-linux-gnu/libc.so.6
fl=(3) ???
fn=(4) memcpy@@GLIBC_2.14
0 40
fn=(5) qsort'2
0 30
fn=(6) malloc
0 20

ob=(4) ???
fn=(7) 0x0000000005a81000
0 60
fn=(1)
0 6

totals: 1234
"""


def test_each_function_is_told_apart_from_what_it_calls() -> None:
    executed = read_dump(DUMP.splitlines())
    assert executed["/opt/python/bin/python3.11", "_PyEval_EvalFrameDefault"] == 107
    assert executed["/opt/torch/lib/libtorch_cpu.so", "at::native::add"] == 960
    assert executed.total() == 1234


def test_groups_have_their_functions_by_short_names() -> None:
    assert grouped(read_dump(DUMP.splitlines())) == {
        PYTHON: {"_PyEval_EvalFrameDefault": 107},
        ALLOCATOR: {"_PyObject_Malloc": 11, "malloc": 20},
        KERNELS: {"at::native::add": 960, GENERATED: 66},
        COPIES: {"memcpy": 40},
        NATIVE: {"qsort": 30},
    }


@pytest.mark.parametrize(
    ("path", "function", "group"),
    [
        ("/usr/lib/libpython3.12.so.1.0", "PyLong_Add", PYTHON),
        ("/usr/bin/python3.10", "_PyObject_Free", ALLOCATOR),
        ("/usr/bin/python3.12", "unicodekeys_lookup_unicode", LOOKUPS),
        ("/usr/bin/python3.10", "lookdict_unicode_nodummy", LOOKUPS),
        ("/usr/bin/python3.13", "_PyType_LookupRef", LOOKUPS),
        ("/usr/bin/python3.11", "_PyObject_LookupSpecial", PYTHON),
        ("/usr/bin/python3.10", "PyMemoryView_FromObject", PYTHON),
        ("/x/lib-dynload/math.cpython-311-x86_64-linux-gnu.so", "math_ceil", NATIVE),
        ("/x/torch/lib/libtorch_python.so", "THPVariable_add", NATIVE),
        ("/x/torch/lib/libc10.so", "c10::TensorImpl::TensorImpl", NATIVE),
        ("/x/torch/lib/libgomp-a34b3233.so.1", "gomp_barrier", KERNELS),
        ("/x/libmkl_core.so.2", "mkl_blas_sgemm", KERNELS),
        ("/lib/libm.so.6", "__expf_sse2", KERNELS),
        ("/lib/libc-2.31.so", "_int_free", ALLOCATOR),
        ("/lib/libc.so.6", "unlink_chunk.constprop.0", ALLOCATOR),
        ("/lib/libc.so.6", "__memset_sse2_unaligned", COPIES),
        ("/lib/libc.so.6", "freelocale", NATIVE),
        ("/x/libmpdec.so.3", "mpd_add", NATIVE),
        ("", "0x1", KERNELS),
    ],
)
def test_a_function_belongs_to_the_group_of_its_file(path: str, function: str, group: str) -> None:
    assert group_of(path, function) == group


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("at::native::add(at::Tensor const&, at::Tensor const&)", "at::native::add"),
        (
            "void at::native::DEFAULT::vectorized_loop<at::native::silu_kernel(at::Iterator&)::"
            "{lambda()#1}::operator()() const>(char**, long)",
            "silu_kernel",
        ),
        ("std::enable_if<is_same_v<float, float>, void>::type at::native::exp<float>", "exp"),
        ("0x000000000cdbb2c0", "libtorch_cpu.so without a name"),
        ("f" * 500, "f" * MOST_LETTERS),
    ],
)
def test_a_long_name_says_what_it_is_for(function: str, name: str) -> None:
    assert short_name("/x/libtorch_cpu.so", function).endswith(name)
    assert len(short_name("/x/libtorch_cpu.so", function)) <= MOST_LETTERS


def test_of_many_functions_the_largest_are_kept() -> None:
    many = Counter({f"f{number}": 1000 + number for number in range(100)})
    kept = largest(many)
    assert len(kept) == MOST_FUNCTIONS
    assert min(kept.values()) == 1060
    assert largest(Counter({"much": 10_000, "little": 10})) == {"much": 10_000}

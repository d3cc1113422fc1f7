"""Numbers of libclang's stable interface (clang-c/Index.h) that the rules speak of."""

from __future__ import annotations

from enum import IntEnum


class CursorKind(IntEnum):
    """Kinds of cursors up to 999, then kinds of types: the two enumerations overlap, so names say which."""

    UNEXPOSED_DECL = 1
    ACCESS = 39
    STRUCT = 2
    UNION = 3
    CLASS = 4
    ENUM = 5
    FIELD = 6
    ENUM_CONSTANT = 7
    FUNCTION_DECL = 8
    VARIABLE = 9
    PARAMETER = 10
    TYPEDEF = 20
    METHOD = 21
    NAMESPACE = 22
    LINKAGE = 23
    CONSTRUCTOR = 24
    DESTRUCTOR = 25
    CONVERSION = 26
    FUNCTION_TEMPLATE = 30
    CLASS_TEMPLATE = 31
    PARTIAL_SPECIALISATION = 32
    NAMESPACE_ALIAS = 33
    USING_DIRECTIVE = 34
    USING_DECLARATION = 35
    TYPE_ALIAS = 36
    TYPE_REF = 43
    BASE = 44
    TEMPLATE_REF = 45
    NAMESPACE_REF = 46
    MEMBER_REF = 47
    OVERLOADED_REF = 49
    UNEXPOSED_EXPR = 100
    DECL_REF = 101
    MEMBER_REF_EXPR = 102
    CALL = 103
    INTEGER = 106
    FLOATING = 107
    STRING = 109
    CHARACTER = 110
    PAREN = 111
    UNARY = 112
    SUBSCRIPT = 113
    BINARY = 114
    COMPOUND_ASSIGNMENT = 115
    C_CAST = 117
    INIT_LIST = 119
    STATIC_CAST = 124
    REINTERPRET_CAST = 126
    FUNCTIONAL_CAST = 128
    LAMBDA = 144
    FIRST_STATEMENT = 200
    COMPOUND = 202
    CASE = 203
    FIRST_ATTRIBUTE = 400
    STATIC_ASSERT = 602

    # types; UNSIGNED_CHAR and SIGNED_CHAR are plain ``char``, by the host
    UNEXPOSED_TYPE = 1001
    VOID = 1002
    UNSIGNED_CHAR = 1004
    SIGNED_CHAR = 1013
    WIDE_CHAR = 1015
    FIRST_FLOAT = 1021
    LONG_DOUBLE = 1023
    DEPENDENT = 1026
    HALF = 1031
    POINTER = 1101
    LVALUE_REFERENCE = 1103
    RVALUE_REFERENCE = 1104
    RECORD = 1105
    ENUM_TYPE = 1106
    FUNCTION = 1111
    CONSTANT_ARRAY = 1112
    DEPENDENT_ARRAY = 1116
    MEMBER_POINTER = 1117
    AUTO = 1118


TYPE_BASE = 1000
"""Added to libclang's number of a kind of type."""


class Unary(IntEnum):
    ADDRESS_OF = 5
    DEREFERENCE = 6


class Binary(IntEnum):
    SUBTRACT = 7
    THREE_WAY = 10
    NOT_EQUAL = 16


FUNCTIONS = frozenset(
    (
        CursorKind.FUNCTION_DECL,
        CursorKind.METHOD,
        CursorKind.CONSTRUCTOR,
        CursorKind.DESTRUCTOR,
        CursorKind.CONVERSION,
        CursorKind.FUNCTION_TEMPLATE,
    )
)
RECORDS = frozenset(
    (CursorKind.STRUCT, CursorKind.CLASS, CursorKind.CLASS_TEMPLATE, CursorKind.PARTIAL_SPECIALISATION)
)
LITERALS = frozenset((CursorKind.INTEGER, CursorKind.FLOATING, CursorKind.CHARACTER))
CASTS = frozenset(
    (CursorKind.C_CAST, CursorKind.STATIC_CAST, CursorKind.REINTERPRET_CAST, CursorKind.FUNCTIONAL_CAST)
)

CONSTRUCTS = frozenset(
    (
        *(1, 2, 4, 5, 6, 7, 8, 9, 10, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 31, 32, 33, 34, 35, 36, 39),
        *(43, 44, 45, 46, 47, 49, 50),
        *(100, 101, 102, 103, 106, 107, 109, 110, 111, 112, 113, 114, 115, 116, 117, 119, 124, 126, 128),
        *(130, 131, 132, 136, 142, 143, 144),
        *(200, 202, 203, 204, 205, 206, 207, 208, 209, 212, 213, 214, 225, 230, 231),
        *(601, 602),
    )
)
"""Kinds of nodes that a kernel may consist of: declarations, references, expressions, statements.

Not among them: unions, labels and goto, asm, exceptions, new and delete, typeid, dynamic_cast,
const_cast, statement expressions, coroutines, and whatever libclang adds.
"""

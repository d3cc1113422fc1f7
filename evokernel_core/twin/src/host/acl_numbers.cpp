// Half precision numbers and sizes of data types for host code.
#include "acl/acl_base.h"
#include "evokernel/twin/half.h"

extern "C" {

float aclFloat16ToFloat(aclFloat16 value)
{
    half number;
    static_assert(sizeof(number) == sizeof(value));
    __builtin_memcpy(&number, &value, sizeof(value));
    return static_cast<float>(number);
}

aclFloat16 aclFloatToFloat16(float value)
{
    const half number(value);
    aclFloat16 bits;
    __builtin_memcpy(&bits, &number, sizeof(bits));
    return bits;
}

size_t aclDataTypeSize(aclDataType type)
{
    switch (type) {
        case ACL_FLOAT:
        case ACL_INT32:
        case ACL_UINT32:
        case ACL_COMPLEX32:
            return 4;
        case ACL_FLOAT16:
        case ACL_BF16:
        case ACL_INT16:
        case ACL_UINT16:
            return 2;
        case ACL_INT8:
        case ACL_UINT8:
        case ACL_BOOL:
            return 1;
        case ACL_INT64:
        case ACL_UINT64:
        case ACL_DOUBLE:
        case ACL_COMPLEX64:
            return 8;
        case ACL_COMPLEX128:
            return 16;
        default:
            return 0;
    }
}
}

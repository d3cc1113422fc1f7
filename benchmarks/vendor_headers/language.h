// What the documentation's list of language limits leaves out on the device. Included behind the standard
// library and the headers, before a kernel: a kernel's file holds no host code that needs these.
#pragma GCC poison virtual new delete typeid dynamic_cast malloc calloc realloc free

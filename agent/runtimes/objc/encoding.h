/* Reads Objective-C type encodings, to find out how a method returns its result. */
#ifndef SJ_AGENT_RUNTIMES_OBJC_ENCODING_H
#define SJ_AGENT_RUNTIMES_OBJC_ENCODING_H

typedef enum sj_objc_result {
    SJ_OBJC_RESULT_UNKNOWN = 0, /* For example vectors, bit fields, damaged text. */
    SJ_OBJC_RESULT_REGISTERS = 1,
    SJ_OBJC_RESULT_MEMORY = 2 /* The address of the result is an argument before the receiver. */
} sj_objc_result;

/* Returns how a method with the type encoding `types` returns its result in the C ABI of x86-64. */
sj_objc_result sj_objc_encoding_result(const char *types);

#endif

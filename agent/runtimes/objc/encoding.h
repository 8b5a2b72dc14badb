/* Type encodings: what a method's types say about where its result goes. */
#ifndef SJ_AGENT_RUNTIMES_OBJC_ENCODING_H
#define SJ_AGENT_RUNTIMES_OBJC_ENCODING_H

typedef enum sj_objc_result {
    SJ_OBJC_RESULT_UNKNOWN = 0, /* not understood: vectors, bit fields, damage */
    SJ_OBJC_RESULT_REGISTERS = 1,
    SJ_OBJC_RESULT_MEMORY = 2 /* its address is passed in front of the receiver (x86-64) */
} sj_objc_result;

/* sj_objc_encoding_result returns how a method with these types returns by the C ABI of x86-64. */
sj_objc_result sj_objc_encoding_result(const char *types);

#endif

/* What the code that is put into Java methods for their values and the native methods that it calls
 * agree on. Both halves make the class `java.sojourn.Values` of this table.
 *
 * Every native method does nothing when it returns 0: so it is once the agent has left. It gets,
 * behind the values themselves, an int that says what it is about and the function's id. */
#ifndef SJ_AGENT_ABI_JAVA_VALUES_H
#define SJ_AGENT_ABI_JAVA_VALUES_H

#define SJ_JAVA_VALUES_CLASS "java/sojourn/Values"

/* Bits of the int. It fits a short. */
enum {
    SJ_JAVA_VALUE_DESCRIPTOR = 0xff, /* sj_value_descriptor under which the value is recorded */
    SJ_JAVA_AT_ENTRY = 1,            /* of SJ_JAVA_COST */
    SJ_JAVA_VALUE_FIRST = 1 << 8,    /* the first of a call's entry or exit */
    SJ_JAVA_VALUE_TYPE_SHIFT = 9     /* sj_java_type, three bits */
};

typedef enum sj_java_type {
    SJ_JAVA_WHOLE = 0, /* byte, short, int */
    SJ_JAVA_BOOLEAN = 1,
    SJ_JAVA_CHARACTER = 2,
    SJ_JAVA_FLOAT = 3, /* numbers travel as longs: these as their bits */
    SJ_JAVA_DOUBLE = 4,
    SJ_JAVA_REFERENCE = 5,
    SJ_JAVA_VOID = 6,
    SJ_JAVA_LONG = 7
} sj_java_type;

typedef enum sj_java_native {
    SJ_JAVA_RECORD_NUMBER = 0,
    SJ_JAVA_RECORD_OBJECT = 1,
    SJ_JAVA_RECORD_THROWN = 2, /* the exception that ends the call */
    SJ_JAVA_JUDGE = 3,         /* by rules without a condition, where the parameter is not there */
    SJ_JAVA_SET = 4,           /* gives what of the number is to be changed, bit by bit (xor) */
    SJ_JAVA_DECIDE = 5,        /* 1: the call is left out and has been recorded; the type is that of
                                  its result. Throws the exception that a rule wants */
    SJ_JAVA_RESULT = 6,        /* what a call that is left out returns */
    SJ_JAVA_COST = 7,          /* CPU time and bytes so far; what: SJ_JAVA_AT_ENTRY or 0 */
    SJ_JAVA_LINE = 8,          /* a line begins to run; what: its place in the method's old code */
    SJ_JAVA_NATIVES = 9
} sj_java_native;

typedef struct sj_java_native_name {
    const char *name;
    const char *descriptor;
} sj_java_native_name;

static const sj_java_native_name sj_java_natives[SJ_JAVA_NATIVES] = {
    [SJ_JAVA_RECORD_NUMBER] = {"number", "(JII)V"},
    [SJ_JAVA_RECORD_OBJECT] = {"object", "(Ljava/lang/Object;II)V"},
    [SJ_JAVA_RECORD_THROWN] = {"thrown", "(Ljava/lang/Object;II)V"},
    [SJ_JAVA_JUDGE] = {"judge", "(II)V"},
    [SJ_JAVA_SET] = {"set", "(JII)J"},
    [SJ_JAVA_DECIDE] = {"decide", "(II)I"},
    [SJ_JAVA_RESULT] = {"result", "(II)J"},
    [SJ_JAVA_COST] = {"cost", "(II)V"},
    [SJ_JAVA_LINE] = {"line", "(II)V"}};

#endif

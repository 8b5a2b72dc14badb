/* The interface between two sides: code inserted into Java methods to record values, and the native
 * methods that this code calls. Both sides generate the class `java.sojourn.Values` from this
 * table.
 *
 * A native method receives the values, then an int that describes them, then the function's id.
 * After the agent has left, it does nothing and returns 0. */
#ifndef SJ_AGENT_ABI_JAVA_VALUES_H
#define SJ_AGENT_ABI_JAVA_VALUES_H

#define SJ_JAVA_VALUES_CLASS "java/sojourn/Values"

/* Bits of the int that describes the values. It fits into a short. */
enum {
    SJ_JAVA_VALUE_DESCRIPTOR = 0xff, /* sj_value_descriptor under which the value is recorded */
    SJ_JAVA_AT_ENTRY = 1,            /* for SJ_JAVA_COST */
    SJ_JAVA_VALUE_FIRST = 1 << 8,    /* the first value of a call's entry or exit */
    SJ_JAVA_VALUE_TYPE_SHIFT = 9,    /* shift of the sj_java_type, which has three bits */
    /* record an object by its own class: boxed numbers as numbers, a String as a text */
    SJ_JAVA_VALUE_OWN = 1 << 12
};

typedef enum sj_java_type {
    SJ_JAVA_WHOLE = 0, /* byte, short, int */
    SJ_JAVA_BOOLEAN = 1,
    SJ_JAVA_CHARACTER = 2,
    SJ_JAVA_FLOAT = 3, /* numbers are passed as longs: floats and doubles as their bits */
    SJ_JAVA_DOUBLE = 4,
    SJ_JAVA_REFERENCE = 5,
    SJ_JAVA_VOID = 6,
    SJ_JAVA_LONG = 7
} sj_java_type;

typedef enum sj_java_native {
    SJ_JAVA_RECORD_NUMBER = 0,
    SJ_JAVA_RECORD_OBJECT = 1,
    SJ_JAVA_RECORD_THROWN = 2, /* the exception that ends the call */
    /* Evaluates the rules that have no condition and name a parameter that the method does not
     * have. */
    SJ_JAVA_JUDGE = 3,
    SJ_JAVA_SET = 4, /* returns the change of the number, as the bits to flip (xor) */
    /* Returns 1 if a rule skips the call; this function has recorded the call then. The
     * sj_java_type is the type of the call's result. Throws the exception that a rule names. */
    SJ_JAVA_DECIDE = 5,
    SJ_JAVA_RESULT = 6, /* returns the result of a skipped call */
    SJ_JAVA_COST = 7,   /* CPU time and bytes so far; the descriptor is SJ_JAVA_AT_ENTRY or 0 */
    /* a line starts to run; the descriptor is its index in the method's original code */
    SJ_JAVA_LINE = 8,
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

/* Design notes
 *
 * A boxed object is recognised by its exact class, because these classes are final. Elements of an
 * array are copied in one call of JNI, so another thread may change the array meanwhile. */
#include "agent/inproc/jvm/own_values.h"

#include <string.h>

enum { ELEMENTS_SHOWN = 4, BOXES = 8 };

/* A class of java.lang whose objects hold one primitive value. */
typedef struct box {
    const char *class_name;
    const char *signature; /* JVM type of its field `value` */
    uint32_t kind;         /* by which its values are recorded */
    sj_java_type type;
} box;

static const box boxes[BOXES] = {{"java/lang/Integer", "I", SJ_VALUE_INT, SJ_JAVA_WHOLE},
                                 {"java/lang/Long", "J", SJ_VALUE_LONG, SJ_JAVA_LONG},
                                 {"java/lang/Double", "D", SJ_VALUE_DOUBLE, SJ_JAVA_DOUBLE},
                                 {"java/lang/Boolean", "Z", SJ_VALUE_BOOL, SJ_JAVA_BOOLEAN},
                                 {"java/lang/Character", "C", SJ_VALUE_OBJECT, SJ_JAVA_CHARACTER},
                                 {"java/lang/Float", "F", SJ_VALUE_FLOAT, SJ_JAVA_FLOAT},
                                 {"java/lang/Short", "S", SJ_VALUE_INT, SJ_JAVA_WHOLE},
                                 {"java/lang/Byte", "B", SJ_VALUE_INT, SJ_JAVA_WHOLE}};

static jclass box_classes[BOXES];
static jfieldID box_fields[BOXES];

bool sj_jvm_own_values_init(JNIEnv *env)
{
    bool is_complete = true;
    for (uint32_t i = 0; i < BOXES; i++) {
        const jclass class = (*env)->FindClass(env, boxes[i].class_name);
        box_classes[i] = class != NULL ? (*env)->NewGlobalRef(env, class) : NULL;
        box_fields[i] =
            class != NULL ? (*env)->GetFieldID(env, class, "value", boxes[i].signature) : NULL;
        if ((*env)->ExceptionCheck(env)) {
            (*env)->ExceptionClear(env);
        }
        is_complete = is_complete && box_classes[i] != NULL && box_fields[i] != NULL;
    }
    return is_complete;
}

void sj_jvm_own_values_deinit(JNIEnv *env)
{
    for (uint32_t i = 0; i < BOXES; i++) {
        if (box_classes[i] != NULL) {
            (*env)->DeleteGlobalRef(env, box_classes[i]);
        }
        box_classes[i] = NULL;
    }
}

/* Returns the box class of the object and writes its field. Returns NULL if the object is not
 * boxed. */
static const box *find_box(JNIEnv *env, jobject object, jfieldID *field)
{
    const jclass class = (*env)->GetObjectClass(env, object);
    const box *found = NULL;
    for (uint32_t i = 0; i < BOXES && found == NULL; i++) {
        if ((*env)->IsSameObject(env, class, box_classes[i])) {
            found = &boxes[i];
            *field = box_fields[i];
        }
    }
    (*env)->DeleteLocalRef(env, class);
    return found;
}

static uint64_t read_box(JNIEnv *env, const box *of, jobject object, jfieldID field)
{
    switch (of->signature[0]) {
    case 'J':
        return (uint64_t)(*env)->GetLongField(env, object, field);
    case 'D':
        return sj_arch_jvm_real_field(env, object, field, (void *)(*env)->GetDoubleField);
    case 'F':
        return (uint32_t)sj_arch_jvm_real_field(env, object, field, (void *)(*env)->GetFloatField);
    case 'Z':
        return (*env)->GetBooleanField(env, object, field) != 0;
    case 'C':
        return (*env)->GetCharField(env, object, field);
    case 'S':
        return (uint64_t)(int64_t)(*env)->GetShortField(env, object, field);
    case 'B':
        return (uint64_t)(int64_t)(*env)->GetByteField(env, object, field);
    default:
        return (uint64_t)(int64_t)(*env)->GetIntField(env, object, field);
    }
}

/* Copies the first elements of an array of numbers, characters or booleans. Returns their type:
 * SJ_JAVA_LONG for all whole numbers. */
static sj_java_type copy_elements(JNIEnv *env, jarray array, char element, jsize count,
                                  int64_t numbers[ELEMENTS_SHOWN])
{
    union {
        jint ints[ELEMENTS_SHOWN];
        jlong longs[ELEMENTS_SHOWN];
        jshort shorts[ELEMENTS_SHOWN];
        jbyte bytes[ELEMENTS_SHOWN];
        jchar chars[ELEMENTS_SHOWN];
        jboolean booleans[ELEMENTS_SHOWN];
        uint32_t singles[ELEMENTS_SHOWN];
    } from;
    switch (element) {
    case 'I':
        (*env)->GetIntArrayRegion(env, array, 0, count, from.ints);
        break;
    case 'J':
        (*env)->GetLongArrayRegion(env, array, 0, count, from.longs);
        break;
    case 'S':
        (*env)->GetShortArrayRegion(env, array, 0, count, from.shorts);
        break;
    case 'B':
        (*env)->GetByteArrayRegion(env, array, 0, count, from.bytes);
        break;
    case 'C':
        (*env)->GetCharArrayRegion(env, array, 0, count, from.chars);
        break;
    case 'F':
        (*env)->GetFloatArrayRegion(env, array, 0, count, (jfloat *)(void *)from.singles);
        break;
    case 'D':
        (*env)->GetDoubleArrayRegion(env, array, 0, count, (jdouble *)(void *)from.longs);
        break;
    default:
        (*env)->GetBooleanArrayRegion(env, array, 0, count, from.booleans);
    }
    for (jsize i = 0; i < count; i++) {
        numbers[i] = element == 'I'   ? from.ints[i]
                     : element == 'J' ? from.longs[i]
                     : element == 'S' ? from.shorts[i]
                     : element == 'B' ? from.bytes[i]
                     : element == 'C' ? from.chars[i]
                     : element == 'F' ? (int64_t)from.singles[i]
                     : element == 'D' ? from.longs[i]
                                      : from.booleans[i];
    }
    return element == 'C'   ? SJ_JAVA_CHARACTER
           : element == 'Z' ? SJ_JAVA_BOOLEAN
           : element == 'F' ? SJ_JAVA_FLOAT
           : element == 'D' ? SJ_JAVA_DOUBLE
                            : SJ_JAVA_LONG;
}

/* Appends a number, a character or a boolean. Floating-point numbers are passed as their bits. */
static void add_number(sj_java_type type, int64_t number, sj_value_text *text)
{
    if (type == SJ_JAVA_FLOAT || type == SJ_JAVA_DOUBLE) {
        sj_value_text_add_real(text, (uint64_t)number, type == SJ_JAVA_FLOAT);
    } else {
        sj_jvm_describe_number(type, number, text);
    }
}

/* Appends an object inside another one. */
static void add_object(JNIEnv *env, jobject object, sj_value_text *text)
{
    jfieldID field = NULL;
    const box *of = object != NULL ? find_box(env, object, &field) : NULL;
    if (object == NULL) {
        sj_value_text_add(text, "null");
    } else if (of != NULL) {
        add_number(of->type, (int64_t)read_box(env, of, object, field), text);
    } else {
        sj_jvm_describe(env, object, text);
    }
}

static void add_objects(JNIEnv *env, jobjectArray array, jsize count, sj_value_text *text)
{
    for (jsize i = 0; i < count && text->note != SJ_VALUE_CUT; i++) {
        const jobject element = (*env)->GetObjectArrayElement(env, array, i);
        sj_value_text_add(text, i == 0 ? "{" : ",");
        add_object(env, element, text);
        if (element != NULL) {
            (*env)->DeleteLocalRef(env, element);
        }
    }
}

static void add_numbers(sj_java_type type, const int64_t *numbers, jsize count, sj_value_text *text)
{
    for (jsize i = 0; i < count; i++) {
        sj_value_text_add(text, i == 0 ? "{" : ",");
        add_number(type, numbers[i], text);
    }
}

/* Appends the first elements of an array, in braces. */
static void add_elements(JNIEnv *env, jarray array, const char *signature, sj_value_text *text)
{
    int64_t numbers[ELEMENTS_SHOWN];
    const jsize length = (*env)->GetArrayLength(env, array);
    const jsize count = length < ELEMENTS_SHOWN ? length : ELEMENTS_SHOWN;
    const bool is_of_objects = signature[1] == 'L' || signature[1] == '[';
    if (is_of_objects) {
        add_objects(env, array, count, text);
    } else {
        const sj_java_type type = copy_elements(env, array, signature[1], count, numbers);
        add_numbers(type, numbers, count, text);
    }
    sj_value_text_add(text, count == 0 ? "{}" : count < length ? ",...}" : "}");
}

/* Describes an object, and if it is an array, its first elements. */
static void describe(JNIEnv *env, jobject object, sj_value_text *text)
{
    char *signature = NULL;
    sj_jvm_describe(env, object, text);
    const jclass class = (*env)->GetObjectClass(env, object);
    if ((*sj_jvm.jvmti)->GetClassSignature(sj_jvm.jvmti, class, &signature, NULL) ==
        JVMTI_ERROR_NONE) {
        if (signature[0] == '[') {
            add_elements(env, object, signature, text);
        }
        (void)(*sj_jvm.jvmti)->Deallocate(sj_jvm.jvmti, (unsigned char *)signature);
    }
}

void sj_jvm_own_value_of(JNIEnv *env, jobject object, sj_jvm_own_value *value)
{
    jfieldID field = NULL;
    *value = (sj_jvm_own_value){.kind = SJ_VALUE_OBJECT};
    if (object == NULL) {
        value->text.note = SJ_VALUE_NULL;
        return;
    }
    if (sj_jvm_describe_string(env, object, &value->text)) {
        value->kind = SJ_VALUE_STRING;
        return;
    }
    const box *of = find_box(env, object, &field);
    if (of == NULL) {
        describe(env, object, &value->text);
        return;
    }
    value->kind = of->kind;
    value->bits = read_box(env, of, object, field);
    if (of->kind == SJ_VALUE_OBJECT) {
        sj_jvm_describe_number(of->type, (int64_t)value->bits, &value->text);
    }
}

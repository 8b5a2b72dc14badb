/* Design notes
 *
 * Objects are described without running any of their code, by class and identity hash, an array by
 * class and length, a string by its characters, an enum constant by its name. */
#include "agent/inproc/jvm/values.h"

#include <string.h>

enum { REPLACEMENT = 0xfffd, SURROGATE = 0xd800, SURROGATE_END = 0xe000 };

static jclass string_class;
static jclass enum_class;
static jclass throwable_class;
static jfieldID enum_name;

static jclass find_global(JNIEnv *env, const char *name)
{
    const jclass class = (*env)->FindClass(env, name);
    return class != NULL ? (*env)->NewGlobalRef(env, class) : NULL;
}

bool sj_jvm_describe_init(JNIEnv *env)
{
    string_class = find_global(env, "java/lang/String");
    enum_class = find_global(env, "java/lang/Enum");
    throwable_class = find_global(env, "java/lang/Throwable");
    if (enum_class != NULL) {
        enum_name = (*env)->GetFieldID(env, enum_class, "name", "Ljava/lang/String;");
    }
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
    }
    return string_class != NULL && throwable_class != NULL && enum_name != NULL;
}

static void delete_class(JNIEnv *env, jclass *class)
{
    if (*class != NULL) {
        (*env)->DeleteGlobalRef(env, *class);
    }
    *class = NULL;
}

void sj_jvm_describe_deinit(JNIEnv *env)
{
    delete_class(env, &string_class);
    delete_class(env, &enum_class);
    delete_class(env, &throwable_class);
}

static void add_string(JNIEnv *env, jstring string, sj_value_text *text)
{
    jchar units[SJ_VALUE_TEXT_BYTES + 1];
    const jsize length = (*env)->GetStringLength(env, string);
    const jsize count = length <= SJ_VALUE_TEXT_BYTES ? length : SJ_VALUE_TEXT_BYTES + 1;
    (*env)->GetStringRegion(env, string, 0, count, units);
    sj_value_text_add_units(text, units, count);
}

bool sj_jvm_describe_string(JNIEnv *env, jobject object, sj_value_text *text)
{
    if (object == NULL) {
        text->note = SJ_VALUE_NULL;
        return true;
    }
    if (!(*env)->IsInstanceOf(env, object, string_class)) {
        return false;
    }
    add_string(env, object, text);
    return true;
}

void sj_jvm_describe_number(sj_java_type type, int64_t number, sj_value_text *text)
{
    enum { DECIMAL = 10 };
    if (type == SJ_JAVA_BOOLEAN) {
        sj_value_text_add(text, number != 0 ? "true" : "false");
        return;
    }
    if (type == SJ_JAVA_CHARACTER) {
        const uint32_t unit = (uint16_t)number;
        sj_value_text_add(text, "'");
        sj_value_text_add_code(
            text, unit >= SURROGATE && unit < SURROGATE_END ? (uint32_t)REPLACEMENT : unit);
        sj_value_text_add(text, "'");
        return;
    }
    sj_value_text_add(text, number < 0 ? "-" : "");
    sj_value_text_add_number(text, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, DECIMAL);
}

/* Appends one character of a class name in modified UTF-8 and returns the address of the next one.
 * Modified UTF-8 encodes a character above U+FFFF as two surrogates; each becomes "?". */
static const char *add_name_character(sj_value_text *text, const char *at)
{
    const unsigned char first = (unsigned char)at[0];
    const uint32_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : 3;
    for (uint32_t i = 1; i < bytes; i++) {
        if (at[i] == '\0') {
            return at + i;
        }
    }
    if (bytes == 3 && first == 0xed && (unsigned char)at[1] >= 0xa0) {
        sj_value_text_add(text, "?");
    } else if (bytes == 1) {
        sj_value_text_add_bytes(text, *at == '/' ? "." : at, 1);
    } else {
        sj_value_text_add_bytes(text, at, bytes);
    }
    return at + bytes;
}

static const char *primitive_of(char type)
{
    switch (type) {
    case 'Z':
        return "boolean";
    case 'B':
        return "byte";
    case 'C':
        return "char";
    case 'S':
        return "short";
    case 'I':
        return "int";
    case 'J':
        return "long";
    case 'F':
        return "float";
    default:
        return "double";
    }
}

/* Appends the type of a signature, for example "int[3][]". `length` is the length of an array's
 * first dimension, or -1. */
static void add_type(sj_value_text *text, const char *signature, jsize length)
{
    enum { DECIMAL = 10 };
    const char *at = signature;
    while (*at == '[') {
        at++;
    }
    const bool is_object = *at == 'L';
    if (!is_object) {
        sj_value_text_add(text, primitive_of(*at));
    }
    for (at++; is_object && *at != '\0' && *at != ';';) {
        at = add_name_character(text, at);
    }
    for (const char *dimension = signature; *dimension == '['; dimension++) {
        sj_value_text_add(text, "[");
        if (dimension == signature && length >= 0) {
            sj_value_text_add_number(text, (uint64_t)length, DECIMAL);
        }
        sj_value_text_add(text, "]");
    }
}

/* Appends the class of an object. Returns true if the description is complete: the object is an
 * array, or its class is not known. */
static bool add_class_of(JNIEnv *env, jobject object, bool with_length, sj_value_text *text)
{
    char *signature = NULL;
    const jclass class = (*env)->GetObjectClass(env, object);
    if ((*sj_jvm.jvmti)->GetClassSignature(sj_jvm.jvmti, class, &signature, NULL) !=
        JVMTI_ERROR_NONE) {
        text->note = SJ_VALUE_UNREADABLE;
        return true;
    }
    const bool is_array = signature[0] == '[';
    add_type(text, signature,
             is_array && with_length ? (*env)->GetArrayLength(env, object) : (jsize)-1);
    (void)(*sj_jvm.jvmti)->Deallocate(sj_jvm.jvmti, (unsigned char *)signature);
    return is_array;
}

void sj_jvm_describe_class(JNIEnv *env, jobject object, sj_value_text *text)
{
    (void)add_class_of(env, object, false, text);
}

void sj_jvm_describe(JNIEnv *env, jobject object, sj_value_text *text)
{
    enum { HEXADECIMAL = 16 };
    jint hash = 0;
    if (object == NULL) {
        text->note = SJ_VALUE_NULL;
        return;
    }
    if ((*env)->IsInstanceOf(env, object, string_class)) {
        sj_value_text_add(text, "\"");
        add_string(env, object, text);
        sj_value_text_add(text, "\"");
        return;
    }
    if ((*env)->IsInstanceOf(env, object, enum_class)) {
        const jstring name = (*env)->GetObjectField(env, object, enum_name);
        if (name != NULL) {
            add_string(env, name, text);
            return;
        }
    }
    const bool is_done = add_class_of(env, object, true, text);
    if (!is_done &&
        (*sj_jvm.jvmti)->GetObjectHashCode(sj_jvm.jvmti, object, &hash) == JVMTI_ERROR_NONE) {
        sj_value_text_add(text, "@");
        sj_value_text_add_number(text, (uint32_t)hash, HEXADECIMAL);
    }
}

/* Loads a class by the loader of the program's own classes. */
static jclass load_class(JNIEnv *env, const char *name)
{
    if (sj_jvm.app_loader == NULL) {
        return NULL;
    }
    const jclass loader = (*env)->GetObjectClass(env, sj_jvm.app_loader);
    const jmethodID load =
        (*env)->GetMethodID(env, loader, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;");
    const jstring text = load != NULL ? (*env)->NewStringUTF(env, name) : NULL;
    return text != NULL ? (*env)->CallObjectMethod(env, sj_jvm.app_loader, load, text) : NULL;
}

static jthrowable construct_exception(JNIEnv *env, jclass class)
{
    jmethodID method = (*env)->GetMethodID(env, class, "<init>", "(Ljava/lang/String;)V");
    if (method != NULL) {
        const jstring message = (*env)->NewStringUTF(env, "thrown by a rule of Sojourn");
        return message != NULL ? (*env)->NewObject(env, class, method, message) : NULL;
    }
    (*env)->ExceptionClear(env);
    method = (*env)->GetMethodID(env, class, "<init>", "()V");
    return method != NULL ? (*env)->NewObject(env, class, method) : NULL;
}

jthrowable sj_jvm_new_exception(JNIEnv *env, const char *class_name)
{
    const jclass class = load_class(env, class_name);
    jthrowable exception = NULL;
    if (class != NULL && !(*env)->ExceptionCheck(env) &&
        (*env)->IsAssignableFrom(env, class, throwable_class)) {
        exception = construct_exception(env, class);
    }
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
        exception = NULL;
    }
    return exception;
}

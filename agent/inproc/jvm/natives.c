#include "agent/inproc/jvm/natives.h"

#include "agent/inproc/hooks/lasting.h"

#include <string.h>

#define NATIVES_MAGIC UINT64_C(0x59004d564a4a53) /* "SJJVM" */

static sj_lasting *lasting;

/* A class file (JVM specification, chapter 4) of a final class that has only static native methods.
 */
typedef struct class_file {
    uint8_t bytes[1024];
    uint32_t size;
} class_file;

static void put_bytes(class_file *file, const void *bytes, size_t count)
{
    if (file->size + count <= sizeof(file->bytes)) {
        memcpy(file->bytes + file->size, bytes, count);
    }
    file->size += (uint32_t)count;
}

static void put16(class_file *file, uint32_t number)
{
    const uint8_t bytes[] = {(uint8_t)(number >> 8), (uint8_t)number};
    put_bytes(file, bytes, sizeof(bytes));
}

static void put_text(class_file *file, const char *text)
{
    const uint8_t utf8 = 1;
    put_bytes(file, &utf8, 1);
    put16(file, (uint32_t)strlen(text));
    put_bytes(file, text, strlen(text));
}

static void put_class_constant(class_file *file, const char *name, uint32_t name_index)
{
    const uint8_t class = 7;
    put_text(file, name);
    put_bytes(file, &class, 1);
    put16(file, name_index);
}

static void write_class(class_file *file, const char *name, const sj_jvm_native *methods,
                        uint32_t count)
{
    enum { FIRST_NAME = 5, FINAL_SUPER = 0x0031, STATIC_NATIVE = 0x0109 };
    static const uint8_t head[] = {0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52};
    put_bytes(file, head, sizeof(head));
    put16(file, FIRST_NAME + 2 * count);
    put_class_constant(file, name, 1);               /* 1, 2 */
    put_class_constant(file, "java/lang/Object", 3); /* 3, 4 */
    for (uint32_t i = 0; i < count; i++) {
        put_text(file, methods[i].name);
        put_text(file, methods[i].descriptor);
    }
    put16(file, FINAL_SUPER);
    put16(file, 2);
    put16(file, 4);
    put16(file, 0); /* interfaces */
    put16(file, 0); /* fields */
    put16(file, count);
    for (uint32_t i = 0; i < count; i++) {
        put16(file, STATIC_NATIVE);
        put16(file, FIRST_NAME + 2 * i);
        put16(file, FIRST_NAME + 2 * i + 1);
        put16(file, 0);
    }
    put16(file, 0); /* attributes */
}

/* Defines a class, or finds it if an earlier agent has defined it. Returns NULL if the JVM refuses.
 */
static jclass define_class(JNIEnv *env, const char *name, const sj_jvm_native *methods,
                           uint32_t count)
{
    class_file file = {.size = 0};
    write_class(&file, name, methods, count);
    if (file.size > sizeof(file.bytes)) {
        return NULL;
    }
    const jclass class =
        (*env)->DefineClass(env, name, NULL, (const jbyte *)file.bytes, (jsize)file.size);
    if (class != NULL) {
        return class;
    }
    (*env)->ExceptionClear(env);
    return (*env)->FindClass(env, name);
}

static bool find_or_create_trampolines(void)
{
    if (lasting == NULL) {
        lasting = sj_lasting_find(NATIVES_MAGIC);
    }
    if (lasting == NULL) {
        lasting = sj_lasting_new(NATIVES_MAGIC, SJ_JVM_NATIVES_END);
    }
    return lasting != NULL;
}

bool sj_jvm_define_natives(JNIEnv *env, const char *name, const sj_jvm_native *methods,
                           uint32_t count, uint32_t first)
{
    JNINativeMethod registered[SJ_LASTING_MAX];
    if (count > SJ_LASTING_MAX || !find_or_create_trampolines()) {
        return false;
    }
    const jclass class = define_class(env, name, methods, count);
    for (uint32_t i = 0; i < count; i++) {
        sj_lasting_open(lasting, first + i, (uint64_t)(uintptr_t)methods[i].function);
        registered[i] = (JNINativeMethod){
            (char *)(uintptr_t)methods[i].name, (char *)(uintptr_t)methods[i].descriptor,
            (void *)(uintptr_t)sj_lasting_address(lasting, first + i)};
    }
    const bool is_registered =
        class != NULL && (*env)->RegisterNatives(env, class, registered, (jint)count) == JNI_OK;
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
    }
    if (class != NULL) {
        (*env)->DeleteLocalRef(env, class);
    }
    return is_registered;
}

void *sj_jvm_lasting_function(uint32_t index, void *function)
{
    sj_lasting_open(lasting, index, (uint64_t)(uintptr_t)function);
    return (void *)(uintptr_t)sj_lasting_address(lasting, index);
}

void sj_jvm_close_natives(void)
{
    if (lasting != NULL) {
        sj_lasting_close(lasting, SJ_JVM_NATIVES_END);
    }
}

/* A Java class file, read: constants, methods and where their code is. Format: The Java Virtual
 * Machine Specification, chapter 4. Foreign bytes: everything is checked, nothing is trusted. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_FILE_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_FILE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

enum { SJ_CLASS_STACK_MAPS_SINCE = 50 }; /* major version that has StackMapTable */

/* Texts are in modified UTF-8, not terminated, and borrowed from the class file. */
typedef struct sj_class_method {
    uint16_t access;
    sj_slice name;
    sj_slice descriptor;
    uint32_t start;      /* method_info, from here ... */
    uint32_t end;        /* ... to here */
    uint32_t attributes; /* offset of attributes_count */
    uint32_t code;       /* offset of the Code attribute's contents; 0: none */
    uint32_t code_bytes; /* of the contents */
} sj_class_method;

typedef struct sj_class_file {
    sj_slice bytes; /* borrowed */
    uint16_t major;
    uint16_t access;
    uint32_t *constants; /* [constant_count] offset of each constant's tag; 0: not usable */
    uint16_t constant_count;
    uint32_t pool_end;
    sj_slice name;  /* internal form: java/lang/String */
    sj_slice super; /* empty: java/lang/Object, or a module */
    uint32_t methods_count_at;
    uint32_t methods_end;
    sj_class_method *methods;
    uint16_t method_count;
} sj_class_file;

/* sj_class_file_read reads `bytes`, which the caller keeps alive. Release with
 * sj_class_file_deinit, also after a failure. SJ_ECORRUPT it is no class file or is damaged, with
 * the offset; SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_class_file_read(sj_slice bytes, sj_class_file *file, sj_error *error);
void sj_class_file_deinit(sj_class_file *file);

/* sj_class_utf8 gives the text of a CONSTANT_Utf8; empty when `index` is none. */
sj_slice sj_class_utf8(const sj_class_file *file, uint16_t index);

/* sj_class_reference_name gives the name of the member that a Methodref, InterfaceMethodref or
 * Fieldref names; empty when `index` is none. */
sj_slice sj_class_reference_name(const sj_class_file *file, uint16_t index);

/* sj_class_text_is compares a text with a string. */
bool sj_class_text_is(sj_slice text, const char *string);

#endif

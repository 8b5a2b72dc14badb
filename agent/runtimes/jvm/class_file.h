/* Reads Java class files: constants, methods and positions of their code (The Java Virtual Machine
 * Specification, chapter 4). The bytes are not trusted. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_FILE_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_FILE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

enum { SJ_CLASS_STACK_MAPS_SINCE = 50 }; /* First major version that has StackMapTable. */

/* Texts are modified UTF-8, not terminated, and borrowed from the class file. */
typedef struct sj_class_method {
    uint16_t access;
    sj_slice name;
    sj_slice descriptor;
    uint32_t start;      /* Start of the method_info. */
    uint32_t end;        /* End of the method_info. */
    uint32_t attributes; /* Offset of attributes_count. */
    uint32_t code;       /* Offset of the Code attribute's contents. 0: none. */
    uint32_t code_bytes; /* Size of these contents. */
} sj_class_method;

typedef struct sj_class_file {
    sj_slice bytes; /* Borrowed. */
    uint16_t major;
    uint16_t access;
    uint32_t *constants; /* [constant_count] offset of each constant's tag. 0: unusable. */
    uint16_t constant_count;
    uint32_t pool_end;
    sj_slice name;  /* Internal form: java/lang/String. */
    sj_slice super; /* Empty for java/lang/Object and for modules. */
    uint32_t methods_count_at;
    uint32_t methods_end;
    sj_class_method *methods;
    uint16_t method_count;
} sj_class_file;

/* Reads `bytes`, which the caller keeps valid. The caller releases it with sj_class_file_deinit,
 * also after an error. Returns SJ_ECORRUPT with the offset if it is damaged or not a class file.
 * Returns SJ_ENOMEM if out of memory. Thread-safe. */
SJ_MUST_CHECK sj_status sj_class_file_read(sj_slice bytes, sj_class_file *file, sj_error *error);
void sj_class_file_deinit(sj_class_file *file);

/* Returns the text of a CONSTANT_Utf8, or an empty slice if `index` is another constant. */
sj_slice sj_class_utf8(const sj_class_file *file, uint16_t index);

/* Returns the name of the member that a Methodref, InterfaceMethodref or Fieldref names. Returns an
 * empty slice if `index` is another constant. */
sj_slice sj_class_reference_name(const sj_class_file *file, uint16_t index);

/* True if a text equals a string. */
bool sj_class_text_is(sj_slice text, const char *string);

#endif

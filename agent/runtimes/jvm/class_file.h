/* Reads Java class files (JVM specification, chapter 4): constants, and methods with the positions
 * of their code. The bytes are not trusted. All offsets are from the start of the file. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_FILE_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_FILE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"

enum { SJ_CLASS_STACK_MAPS_SINCE = 50 }; /* First major version with StackMapTable. */

/* Texts are modified UTF-8, not terminated, and borrowed from the class file. */
typedef struct sj_class_method {
    uint16_t access;
    sj_slice name;
    sj_slice descriptor;
    uint32_t start;      /* Start of the method_info. */
    uint32_t end;        /* End of the method_info. */
    uint32_t attributes; /* Offset of attributes_count. */
    uint32_t code; /* Offset of the content of the Code attribute; 0 if the method has none. */
    uint32_t code_bytes; /* Size of this content. */
} sj_class_method;

typedef struct sj_class_file {
    sj_slice bytes; /* Borrowed. */
    uint16_t major;
    uint16_t access;
    uint32_t
        *constants; /* [constant_count] Offset of each constant's tag; 0 if the index is unused. */
    uint16_t constant_count;
    uint32_t pool_end; /* Offset of the end of the constants. */
    sj_slice name;     /* Internal form: java/lang/String. */
    sj_slice super;    /* Empty for java/lang/Object and for modules. */
    uint32_t methods_count_at;
    uint32_t methods_end;
    sj_class_method *methods;
    uint16_t method_count;
} sj_class_file;

/* Reads `bytes`, which must stay valid as long as `*file` is used. The caller calls
 * sj_class_file_deinit, even after an error. Returns SJ_ECORRUPT if the bytes are not a class file
 * or are damaged; the error text has the offset. Returns SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_class_file_read(sj_slice bytes, sj_class_file *file, sj_error *error);
void sj_class_file_deinit(sj_class_file *file);

/* Returns the text of the CONSTANT_Utf8 at `index`, or an empty slice if the constant at `index` is
 * not a CONSTANT_Utf8. */
sj_slice sj_class_utf8(const sj_class_file *file, uint16_t index);

/* Returns the member name of the Methodref, InterfaceMethodref or Fieldref at `index`, or an empty
 * slice if the constant at `index` has another kind. */
sj_slice sj_class_reference_name(const sj_class_file *file, uint16_t index);

bool sj_class_text_is(sj_slice text, const char *string);

#endif

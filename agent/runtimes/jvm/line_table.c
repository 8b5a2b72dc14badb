#include "agent/runtimes/jvm/line_table.h"

#include "agent/runtimes/jvm/big_endian.h"

enum { EXCEPTION_BYTES = 8 };

sj_slice sj_line_table_source(const sj_class_file *file)
{
    sj_reader reader =
        sj_reader_of(file->bytes.data + file->methods_end, file->bytes.size - file->methods_end);
    for (uint16_t left = sj_read_be16(&reader); left > 0 && !reader.bad; left--) {
        const sj_slice name = sj_class_utf8(file, sj_read_be16(&reader));
        const uint32_t size = sj_read_be32(&reader);
        if (sj_class_text_is(name, "SourceFile") && size == sizeof(uint16_t)) {
            const uint16_t source = sj_read_be16(&reader);
            return reader.bad ? (sj_slice){0} : sj_class_utf8(file, source);
        }
        sj_read_bytes(&reader, size);
    }
    return (sj_slice){0};
}

static void visit_table(sj_reader *reader, void *context, sj_line_visitor visit)
{
    for (uint16_t left = sj_read_be16(reader); left > 0 && !reader->bad; left--) {
        const uint32_t offset = sj_read_be16(reader);
        const uint32_t line = sj_read_be16(reader);
        if (!reader->bad) {
            visit(context, offset, line);
        }
    }
}

void sj_line_table_visit(const sj_class_file *file, const sj_class_method *method, void *context,
                         sj_line_visitor visit)
{
    if (method->code == 0) {
        return;
    }
    sj_reader reader = sj_reader_of(file->bytes.data + method->code, method->code_bytes);
    sj_read_bytes(&reader, 4); /* max_stack and max_locals. */
    sj_read_bytes(&reader, sj_read_be32(&reader));
    sj_read_bytes(&reader, (size_t)sj_read_be16(&reader) * EXCEPTION_BYTES);
    for (uint16_t left = sj_read_be16(&reader); left > 0 && !reader.bad; left--) {
        const sj_slice name = sj_class_utf8(file, sj_read_be16(&reader));
        const uint32_t size = sj_read_be32(&reader);
        const uint8_t *table = sj_read_bytes(&reader, size);
        if (table != NULL && sj_class_text_is(name, "LineNumberTable")) {
            sj_reader lines = sj_reader_of(table, size);
            visit_table(&lines, context, visit);
        }
    }
}

/* The lowest position that was visited, and its line. */
typedef struct first_line {
    uint32_t offset;
    uint32_t line;
} first_line;

static void keep_first_line(void *context, uint32_t offset, uint32_t line)
{
    first_line *first = context;
    if (first->line == 0 || offset < first->offset) {
        *first = (first_line){.offset = offset, .line = line};
    }
}

uint32_t sj_line_table_first(const sj_class_file *file, const sj_class_method *method)
{
    first_line first = {0};
    sj_line_table_visit(file, method, &first, keep_first_line);
    return first.line;
}

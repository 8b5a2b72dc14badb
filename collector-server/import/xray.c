/* xray: the traces of clang's XRay: of its basic mode, of its flight data recorder (FDR, versions 3
 * to 5; xray_fdr.c), and the text that `llvm-xray convert` writes (xray_text.c). The binary files
 * have numbers of functions, not names; the text has the names if it was made with -symbolize.
 * The layouts are those of https://llvm.org/docs/XRayFDRFormat.html and of LLVM's reader. */
#include "collector-server/import/xray.h"
#include "collector-server/import/importer.h"

enum { BASIC_RECORD_BYTES = 32, RECORD_NORMAL = 0, RECORD_ARGUMENT = 1 };

/* Reads a record of the basic mode. */
static sj_status read_record(sj_xray *xray, uint16_t version)
{
    uint8_t bytes[BASIC_RECORD_BYTES];
    uint32_t thread;
    SJ_TRY(sj_source_bytes(xray->source, bytes, sizeof(bytes), "a record"));
    sj_reader reader = sj_reader_of(bytes, sizeof(bytes));
    const uint16_t type = sj_read_u16(&reader);
    (void)sj_read_u8(&reader);
    const uint8_t kind = sj_read_u8(&reader);
    const uint32_t number = sj_read_u32(&reader);
    const uint64_t cycles = sj_read_u64(&reader);
    const uint32_t tid = sj_read_u32(&reader);
    const uint32_t pid = version >= 3 ? sj_read_u32(&reader) : 0;
    if (type == RECORD_ARGUMENT) {
        return SJ_OK;
    }
    if (type != RECORD_NORMAL || kind > SJ_XRAY_ENTER_ARGUMENT) {
        return sj_source_fail(xray->source, SJ_ECORRUPT, xray->at, "this is not a record");
    }
    SJ_TRY(sj_xray_thread(xray, pid, tid, &thread));
    return sj_xray_add(xray, thread, (sj_xray_kind)kind, (sj_slice){0}, number, cycles);
}

static sj_status read_basic(sj_xray *xray, uint16_t version)
{
    while (sj_source_peek(xray->source) != SJ_SOURCE_END) {
        xray->at = sj_source_offset(xray->source);
        SJ_TRY(read_record(xray, version));
    }
    return SJ_OK;
}

static sj_status read_binary(sj_xray *xray)
{
    uint8_t bytes[SJ_XRAY_HEADER_BYTES];
    SJ_TRY(sj_source_bytes(xray->source, bytes, sizeof(bytes), "the header"));
    sj_reader reader = sj_reader_of(bytes, sizeof(bytes));
    const uint16_t version = sj_read_u16(&reader);
    const uint16_t type = sj_read_u16(&reader);
    (void)sj_read_u32(&reader);
    xray->cycles_per_s = sj_read_u64(&reader);
    if (xray->cycles_per_s == 0) {
        xray->cycles_per_s = 1000000000;
        sj_import_log_note(xray->log, "the file has no cycle frequency: a cycle is taken as a "
                                      "nanosecond");
    }
    if (type == SJ_XRAY_BASIC && version >= 1 && version <= 3) {
        return read_basic(xray, version);
    }
    if (type == SJ_XRAY_FDR && version >= 3 && version <= 5) {
        return sj_xray_read_fdr(xray, version);
    }
    return sj_source_fail(
        xray->source, SJ_EVERSION, 0,
        "XRay files of type %u and version %u cannot be imported; try the text of "
        "\"llvm-xray convert -symbolize\"",
        type, version);
}

static sj_status read_xray(sj_source *source, sj_import_log *log)
{
    sj_xray xray = {.source = source, .log = log, .cycles_per_s = 1000000000};
    const int first = sj_source_peek(source);
    const sj_status status =
        first == '-' || first == '#' ? sj_xray_read_text(&xray) : read_binary(&xray);
    if (xray.has_numbers) {
        sj_import_log_note(log, "the file has numbers of functions only; \"llvm-xray convert "
                                "-symbolize -instr_map PROGRAM FILE\" writes a text with names, "
                                "which can be imported");
    }
    sj_import_log_note(log, "the format has no modules or names of threads; logged arguments and "
                            "custom events are not kept");
    return status;
}

static bool recognizes_xray(sj_slice head)
{
    static const char text[] = "---\nheader:\n";
    if (head.size >= sizeof(text) - 1 && memcmp(head.data, text, sizeof(text) - 1) == 0) {
        return true;
    }
    sj_reader reader = sj_reader_of(head.data, head.size);
    const uint16_t version = sj_read_u16(&reader);
    const uint16_t type = sj_read_u16(&reader);
    (void)sj_read_u32(&reader);
    const uint64_t frequency = sj_read_u64(&reader);
    return !reader.bad && head.size >= SJ_XRAY_HEADER_BYTES && version >= 1 && version <= 5 &&
           type <= SJ_XRAY_FDR && frequency >= 1000000 && frequency < UINT64_C(1) << 40;
}

const sj_importer sj_importer_xray = {
    .name = "xray",
    .summary = "traces of clang's XRay, or the text of llvm-xray convert",
    .recognizes = recognizes_xray,
    .read = read_xray,
};

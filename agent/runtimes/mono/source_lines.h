/* Reads the source lines of an assembly's methods: the sequence points of its symbol file. The
 * symbol file is a Mono symbol file (NAME.exe.mdb) or a portable PDB (NAME.pdb) next to the
 * assembly, or a portable PDB inside the assembly.
 *
 * The bytes are not trusted: a damaged file gives wrong or fewer lines, but no invalid memory
 * access. Thread-safe: the functions have no state. */
#ifndef SJ_AGENT_RUNTIMES_MONO_SOURCE_LINES_H
#define SJ_AGENT_RUNTIMES_MONO_SOURCE_LINES_H

#include "agent/runtimes/runtime.h"

enum { SJ_SOURCE_FILE_BYTES = 4096 };

/* Finds the symbol file of the assembly at `path` and passes its sequence points to `sink`. `id` is
 * the assembly's module id, which identifies the build. Returns SJ_ENOTFOUND if no symbol file of
 * this build exists, or errors like read_container. Blocks while it reads files. */
SJ_MUST_CHECK sj_status sj_mono_read_lines(const char *path, sj_slice id,
                                           sj_container_line_sink sink, void *context);

/* Passes the sequence points in the bytes of a Mono symbol file to `sink`. Returns SJ_ECORRUPT if
 * the bytes are not a Mono symbol file of a known version. Returns SJ_EVERSION if they belong to
 * another build, or the error of the sink. */
SJ_MUST_CHECK sj_status sj_mdb_read(sj_slice file, sj_slice id, sj_container_line_sink sink,
                                    void *context);

/* Like sj_mdb_read for a portable PDB. `id` is from the assembly's debug directory
 * (sj_assembly_pdb_id). Also returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_portable_pdb_read(sj_slice file, sj_slice id,
                                             sj_container_line_sink sink, void *context);

/* Like sj_portable_pdb_read for the portable PDB inside an assembly. `file` is the assembly.
 * Returns SJ_ENOTFOUND if the assembly contains none. */
SJ_MUST_CHECK sj_status sj_embedded_pdb_read(sj_slice file, sj_slice id,
                                             sj_container_line_sink sink, void *context);

#endif

/* Where the code of an assembly's methods is written: sequence points of its symbol file, a Mono
 * symbol file (NAME.exe.mdb) or a portable PDB (NAME.pdb) beside it, or a portable PDB in it.
 *
 * The bytes are foreign: a damaged file gives wrong lines or fewer, never wrong memory. No state;
 * any thread. */
#ifndef SJ_AGENT_RUNTIMES_MONO_SOURCE_LINES_H
#define SJ_AGENT_RUNTIMES_MONO_SOURCE_LINES_H

#include "agent/runtimes/runtime.h"

enum { SJ_SOURCE_FILE_BYTES = 4096 };

/* sj_mono_read_lines finds the symbol file of the assembly at `path`, of the build with the module
 * id, and hands its sequence points to `sink`. SJ_ENOTFOUND: there is none of this build; as
 * read_container otherwise. Blocking: reads files. */
SJ_MUST_CHECK sj_status sj_mono_read_lines(const char *path, sj_slice id,
                                           sj_container_line_sink sink, void *context);

/* sj_mdb_read hands the sequence points in a Mono symbol file's bytes to `sink`. SJ_ECORRUPT: it is
 * none, or of a version that is not known; SJ_EVERSION: that of another build; or what the sink
 * returned. */
SJ_MUST_CHECK sj_status sj_mdb_read(sj_slice file, sj_slice id, sj_container_line_sink sink,
                                    void *context);

/* sj_portable_pdb_read does the same with a portable PDB; its id is that of the assembly's debug
 * directory (sj_assembly_pdb_id). SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_portable_pdb_read(sj_slice file, sj_slice id,
                                             sj_container_line_sink sink, void *context);

/* sj_embedded_pdb_read does the same with the portable PDB in an assembly's own file.
 * SJ_ENOTFOUND: it holds none. */
SJ_MUST_CHECK sj_status sj_embedded_pdb_read(sj_slice file, sj_slice id,
                                             sj_container_line_sink sink, void *context);

#endif

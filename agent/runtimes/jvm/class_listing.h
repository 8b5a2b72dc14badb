/* Reads the JVM's description of a loaded class whose file is not available: its name and its
 * methods. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_LISTING_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_LISTING_H

#include "agent/runtimes/jvm/class_file.h"

/* Reads `bytes` (the sj_link_class of a traced class), which the caller keeps valid. Fills only the
 * class name, and of each method the name, the descriptor and whether it has code. The caller
 * releases it with sj_class_file_deinit, also after an error. Returns SJ_ECORRUPT, SJ_ELIMIT if
 * there are too many methods, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_class_listing_read(sj_slice bytes, sj_class_file *file, sj_error *error);

#endif

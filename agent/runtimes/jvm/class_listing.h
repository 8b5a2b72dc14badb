/* Reads the description of a loaded class that the agent sends if the class file is not available:
 * the names of the class and its methods. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_LISTING_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_LISTING_H

#include "agent/runtimes/jvm/class_file.h"

/* Reads `bytes`, which must stay valid as long as `*file` is used. Of the class file, sets only
 * `bytes`, the class name, and each method's name, descriptor and `code`. `code` is 1 if the method
 * has code. The caller calls sj_class_file_deinit, even after an error. Returns SJ_ECORRUPT,
 * SJ_ENOMEM, or SJ_ELIMIT if there are too many methods. Thread-safe. */
SJ_MUST_CHECK sj_status sj_class_listing_read(sj_slice bytes, sj_class_file *file, sj_error *error);

#endif

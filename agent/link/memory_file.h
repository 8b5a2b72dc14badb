/* Memory files that agents send with their packets. */
#ifndef SJ_AGENT_LINK_MEMORY_FILE_H
#define SJ_AGENT_LINK_MEMORY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Receives one packet, like recv, and the descriptor that came with it. The caller closes `*file`,
 * which is -1 if the packet is empty or has no descriptor. If a packet has several descriptors,
 * closes them and sets `*file` to -1. Does not block. */
ssize_t sj_link_receive_file(int socket, void *packet, size_t capacity, int *file);

/* True if the descriptor refers to a memory file. -1 is allowed. */
bool sj_memory_file_is(int file);

/* Read or write the file from its first byte. Return false if they could not read or write all
 * bytes. */
bool sj_memory_file_read(int file, uint8_t *bytes, size_t size);
bool sj_memory_file_write(int file, const uint8_t *bytes, size_t size);

#endif

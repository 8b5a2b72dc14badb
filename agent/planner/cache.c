#include "agent/objfile/debug_file.h"
#include "agent/planner/plan_file.h"

#include <stdio.h>
#include <sys/stat.h>

/* A hash of 128 bits: two different 64-bit mixes, 8 bytes per step. It protects against accidental
 * collisions only. An attacker who can write the cache could replace the plan itself. */
typedef struct content_hash {
    uint64_t a;
    uint64_t b;
} content_hash;

static void mix_word(content_hash *hash, uint64_t word)
{
    hash->a = (hash->a ^ word) * UINT64_C(0x9fb21c651e98df25);
    hash->a ^= hash->a >> 32;
    hash->b = (hash->b + word) * UINT64_C(0xd6e8feb86659fd93);
    hash->b ^= hash->b >> 29;
}

static void mix_bytes(content_hash *hash, const void *bytes, size_t size)
{
    sj_reader reader = sj_reader_of(bytes, size);
    while (sj_reader_left(&reader) >= sizeof(uint64_t)) {
        mix_word(hash, sj_read_u64(&reader));
    }
    while (sj_reader_left(&reader) > 0) {
        mix_word(hash, sj_read_u8(&reader));
    }
    mix_word(hash, size);
}

static void mix_text(content_hash *hash, const char *text)
{
    mix_bytes(hash, text, strlen(text));
}

/* Mixes a file's path, size and modification time, so that a changed file has another key. */
static void mix_file(content_hash *hash, const char *path)
{
    struct stat status;
    mix_text(hash, path);
    if (stat(path, &status) == 0) {
        mix_word(hash, (uint64_t)status.st_size);
        mix_word(hash, (uint64_t)status.st_mtim.tv_sec);
        mix_word(hash, (uint64_t)status.st_mtim.tv_nsec);
    }
}

sj_slice sj_identity_of(const sj_elf *elf, uint8_t hash[20])
{
    const sj_slice build_id = sj_elf_build_id(elf);
    if (build_id.size > 0 && build_id.size <= SJ_BUILD_ID_MAX_BYTES) {
        return build_id;
    }
    content_hash sum = {.a = 1, .b = 2};
    mix_bytes(&sum, elf->file.data, elf->file.size);
    const uint32_t size = (uint32_t)elf->file.size;
    memcpy(hash, &sum.a, sizeof(sum.a));
    memcpy(hash + sizeof(sum.a), &sum.b, sizeof(sum.b));
    memcpy(hash + sizeof(sum.a) + sizeof(sum.b), &size, sizeof(size));
    return (sj_slice){.data = hash, .size = 20};
}

bool sj_cache_path(const sj_planner_options *options, const sj_elf *elf, sj_slice identity,
                   char path[SJ_PLAN_PATH_BYTES])
{
    if (options->cache_directory == NULL) {
        return false;
    }
    content_hash key = {.a = 3, .b = 4};
    mix_text(&key, options->module_path);
    mix_word(&key, options->only_imports ? 2 : options->library_calls ? 1 : 0);
    if (options->map_file != NULL) {
        mix_file(&key, options->map_file);
    }
    if (sj_elf_find_section(elf, ".symtab") == NULL) {
        sj_elf debug;
        char debug_path[SJ_PLAN_PATH_BYTES];
        const char *root = options->debug_root != NULL ? options->debug_root : "/usr/lib/debug";
        if (sj_debug_file_find(elf, options->module_path, root, &debug, debug_path,
                               sizeof(debug_path)) == SJ_OK) {
            mix_file(&key, debug_path);
            sj_elf_close(&debug);
        }
    } else { /* a file that is stripped later has the same build-id, and other names */
        mix_text(&key, ".symtab");
    }
    char digits[2 * SJ_BUILD_ID_MAX_BYTES + 1];
    for (size_t i = 0; i < identity.size; i++) {
        snprintf(digits + 2 * i, 3, "%02x", identity.data[i]);
    }
    const int path_length =
        snprintf(path, SJ_PLAN_PATH_BYTES, "%s/%s-%s-%016llx%016llx.plan", options->cache_directory,
                 digits, sj_plan_version, (unsigned long long)key.a, (unsigned long long)key.b);
    return path_length > 0 && path_length < SJ_PLAN_PATH_BYTES;
}

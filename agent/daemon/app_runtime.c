/* Design notes
 *
 * An app is started by its program, by a launcher (`mono shop.exe`), or by a script that runs one
 * of these. A program that embeds a runtime loads its library. If the program opens the library
 * only at run time, it counts as native; it is recorded all the same. */
#include "agent/daemon/app_runtime.h"

#include "agent/launch/program.h"
#include "agent/objfile/elf_view.h"
#include "agent/runtimes/runtime.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, LIBRARIES_MAX = 8 };

static const char native[] = "native";

/* Launchers and libraries of runtimes whose descriptors lack them. */
static const struct {
    const char *program;
    const char *library;
    const char *runtime;
} others[] = {{"java", "libjli.so", "java"}, {"java", "libjvm.so", "java"}};

enum { OTHERS = sizeof(others) / sizeof(others[0]) };

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static const char *of_launcher(const char *name)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const char *const *launcher = sj_runtimes[i]->launchers;
        for (; launcher != NULL && *launcher != NULL; launcher++) {
            if (strcmp(name, *launcher) == 0) {
                return sj_runtimes[i]->name;
            }
        }
    }
    for (size_t i = 0; i < OTHERS; i++) {
        if (strcmp(name, others[i].program) == 0) {
            return others[i].runtime;
        }
    }
    return NULL;
}

static const char *of_library(const char *name)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtime_has_file(sj_runtimes[i], name)) {
            return sj_runtimes[i]->name;
        }
    }
    for (size_t i = 0; i < OTHERS; i++) {
        if (strncmp(name, others[i].library, strlen(others[i].library)) == 0) {
            return others[i].runtime;
        }
    }
    return NULL;
}

static const char *of_libraries(const sj_elf *elf)
{
    const char *found = NULL;
    const sj_elf_section *dynamic = sj_elf_find_section(elf, ".dynamic");
    const sj_elf_section *strings = sj_elf_find_section(elf, ".dynstr");
    if (dynamic == NULL || strings == NULL) {
        return NULL;
    }
    const sj_slice names = sj_elf_section_bytes(elf, strings);
    const sj_slice bytes = sj_elf_section_bytes(elf, dynamic);
    sj_reader rows = sj_reader_of(bytes.data, bytes.size);
    while (found == NULL && !rows.bad && sj_reader_left(&rows) >= sizeof(Elf64_Dyn)) {
        const uint64_t tag = sj_read_u64(&rows);
        const uint64_t value = sj_read_u64(&rows);
        found = tag == DT_NEEDED ? of_library(sj_elf_string(names, value)) : NULL;
    }
    return found;
}

/* Returns the runtime of the first launcher among the words of a script, or NULL. */
static const char *of_script(char *text)
{
    char *rest = NULL;
    const char *found = NULL;
    for (char *word = strtok_r(text, " \t\n;&|()\"'", &rest); word != NULL && found == NULL;
         word = strtok_r(NULL, " \t\n;&|()\"'", &rest)) {
        found = of_launcher(file_name(word));
    }
    return found;
}

static const char *of_file(const char *path)
{
    char head[HEAD_BYTES + 1];
    char real[PATH_MAX];
    sj_elf elf;
    sj_error unused;
    const char *found = of_launcher(file_name(path));
    if (found == NULL && realpath(path, real) != NULL) {
        found = of_launcher(file_name(real));
    }
    const int file = found == NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t got = file >= 0 ? read(file, head, HEAD_BYTES) : 0;
    if (file >= 0) {
        close(file);
    }
    head[got > 0 ? got : 0] = '\0';
    if (strncmp(head, "#!", 2) == 0) {
        found = of_script(head);
    } else if (strncmp(head, "MZ", 2) == 0) {
        found = "mono"; /* The kernel starts the program with it (binfmt_misc). */
    } else if (found == NULL && sj_elf_open(path, &elf, &unused) == SJ_OK) {
        found = of_libraries(&elf);
        sj_elf_close(&elf);
    }
    return found;
}

static const char *first_word(const json_t *app)
{
    return json_string_value(json_array_get(json_object_get(app, "command"), 0));
}

/* Resolves the app's program. A relative path begins at the app's directory. */
static sj_status resolve(const json_t *app, char path[PATH_MAX], sj_error *error)
{
    char in_place[PATH_MAX];
    const char *word = first_word(app);
    const char *directory = json_string_value(json_object_get(app, "directory"));
    if (word == NULL) {
        return sj_fail(error, SJ_EINVAL, "it has no command");
    }
    if (directory == NULL || word[0] == '/' || strchr(word, '/') == NULL) {
        return sj_program_resolve(word, path, PATH_MAX, error);
    }
    const int length = snprintf(in_place, sizeof(in_place), "%s/%s", directory, word);
    return length < (int)sizeof(in_place)
               ? sj_program_resolve(in_place, path, PATH_MAX, error)
               : sj_fail(error, SJ_EINVAL, "the path of %s is too long", word);
}

const char *sj_app_runtime_find(const json_t *app)
{
    char path[PATH_MAX];
    sj_error unused = {0};
    if (resolve(app, path, &unused) != SJ_OK) {
        return "";
    }
    const char *found = of_file(path);
    return found != NULL ? found : native;
}

static bool exports(const char *path, const char *name)
{
    sj_elf elf;
    sj_elf_symbol symbol;
    sj_error unused;
    bool found = false;
    if (sj_elf_open(path, &elf, &unused) != SJ_OK) {
        return false;
    }
    const sj_elf_section *table = sj_elf_find_section(&elf, ".dynsym");
    const sj_elf_section *strings = sj_elf_find_section(&elf, ".dynstr");
    if (table != NULL && strings != NULL) {
        const sj_slice rows = sj_elf_section_bytes(&elf, table);
        const sj_slice names = sj_elf_section_bytes(&elf, strings);
        for (uint32_t i = 1; !found && sj_elf_symbol_at(rows, i, &symbol); i++) {
            found =
                symbol.section != SHN_UNDEF && strcmp(sj_elf_string(names, symbol.name), name) == 0;
        }
    }
    sj_elf_close(&elf);
    return found;
}

/* Returns false if out of memory. */
static bool add_need(json_t *needs, const char *need, bool ok, const char *said)
{
    return json_array_append_new(
               needs, json_pack("{ss sb ss}", "need", need, "ok", (int)ok, "said", said)) == 0;
}

/* Adds the need for Mono's profiler interface, through which methods are recorded. A program that
 * is an ELF file is assumed to load a library with this interface. Returns false if out of
 * memory. */
static bool check_mono(const char *program, json_t *needs)
{
    static const char interface[] = "mono_profiler_create";
    char mono[PATH_MAX];
    sj_elf elf;
    sj_error error = {0};
    if (of_launcher(file_name(program)) != NULL) {
        snprintf(mono, sizeof(mono), "%s", program);
    } else if (sj_elf_open(program, &elf, &error) == SJ_OK) {
        sj_elf_close(&elf);
        return add_need(needs, "profiler interface", true, "of the library that the program loads");
    } else if (sj_program_resolve("mono", mono, sizeof(mono), &error) != SJ_OK) {
        return add_need(needs, "profiler interface", false, error.text);
    }
    const bool has = exports(mono, interface);
    return add_need(needs, "profiler interface", has,
                    has ? mono : "the runtime has none: native code is recorded, methods are not");
}

sj_status sj_app_runtime_needs(const json_t *app, json_t **needs, sj_error *error)
{
    char path[PATH_MAX] = "";
    sj_program program = {0};
    sj_status status = resolve(app, path, error);
    *needs = json_array();
    if (status == SJ_OK && sj_program_find(path, &program, error) != SJ_PROGRAM_FINE) {
        status = SJ_EINVAL;
    }
    bool is_complete =
        add_need(*needs, "program", status == SJ_OK, status == SJ_OK ? program.path : error->text);
    if (status == SJ_OK && strcmp(sj_app_runtime_find(app), "mono") == 0) {
        is_complete = check_mono(path, *needs) && is_complete;
    }
    if (!is_complete) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return status != SJ_OK ? SJ_EINVAL : SJ_OK;
}

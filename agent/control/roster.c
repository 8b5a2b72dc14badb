#include "agent/control/roster.h"

#include "agent/control/clock.h"
#include "agent/control/method_group.h"
#include "agent/control/method_names.h"
#include "agent/control/module_frame.h"
#include "agent/control/module_plan.h"
#include "agent/control/pair_map.h"
#include "agent/control/roster_parts.h"
#include "agent/recorder/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { UNHOOKED_PER_FRAME = 4096 };

static const sj_slice no_payload = {0};

sj_status sj_roster_new(const sj_roster_options *options, sj_roster **roster)
{
    sj_roster *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    made->next_function = 1;
    pthread_mutex_init(&made->mutex, NULL);
    *roster = made;
    return SJ_OK;
}

void sj_roster_free(sj_roster *roster)
{
    if (roster == NULL) {
        return;
    }
    pthread_mutex_destroy(&roster->mutex);
    free(roster->processes);
    free(roster->modules);
    free(roster->mappings);
    sj_method_names_deinit(&roster->method_names);
    sj_pair_map_deinit(&roster->receiver_functions);
    free(roster);
}

/* append_entry grows an array by one zeroed element; NULL when memory is short. */
static void *append_entry(void *array, size_t *count, size_t entry_bytes)
{
    void **base = array;
    char *grown = realloc(*base, (*count + 1) * entry_bytes);
    if (grown == NULL) {
        return NULL;
    }
    *base = grown;
    memset(grown + *count * entry_bytes, 0, entry_bytes);
    return grown + (*count)++ * entry_bytes;
}

/* read_description asks /proc what the process runs; what cannot be read stays empty. */
static void read_description(sj_roster_process *entry)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)entry->pid);
    const ssize_t bytes = readlink(path, entry->executable, sizeof(entry->executable) - 1);
    entry->executable[bytes > 0 ? bytes : 0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)entry->pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    const ssize_t got = read(fd, entry->command, sizeof(entry->command) - 1);
    close(fd);
    for (ssize_t i = 0; i + 1 < got; i++) {
        if (entry->command[i] == '\0') {
            entry->command[i] = ' ';
        }
    }
}

static sj_status send_process(sj_roster *roster, const sj_roster_process *entry)
{
    Sojourn__Process message = SOJOURN__PROCESS__INIT;
    message.session_id = sj_emitter_session_bytes(roster->options.emitter);
    message.process = (uint64_t)(entry - roster->processes) + 1;
    message.pid = (uint32_t)entry->pid;
    message.parent_process = entry->parent;
    message.executable = (char *)(uintptr_t)entry->executable;
    message.command = (char *)(uintptr_t)entry->command;
    message.started_ticks = entry->started_ticks;
    message.how = (char *)(uintptr_t)entry->how;
    if (entry->ended) {
        const int status = entry->end.wait_status;
        message.ended_ticks = entry->end.ended_ticks;
        message.disarm_reason = entry->end.disarm_reason;
        message.has_exit = entry->end.has_status;
        if (message.has_exit && WIFEXITED(status)) {
            message.exit_code = WEXITSTATUS(status);
        } else if (message.has_exit && WIFSIGNALED(status)) {
            message.exit_signal = (uint32_t)WTERMSIG(status);
            message.core_dumped = WCOREDUMP(status) != 0;
        }
    }
    return sj_emitter_send(roster->options.emitter, SJ_FRAME_PROCESS, &message.base, no_payload);
}

static sj_status send_mapping(sj_roster *roster, const sj_roster_mapping *mapping,
                              uint64_t unloaded_ticks)
{
    Sojourn__Mapping message = SOJOURN__MAPPING__INIT;
    message.session_id = sj_emitter_session_bytes(roster->options.emitter);
    message.process = mapping->process;
    message.module = mapping->module;
    message.bias = mapping->bias;
    message.loaded_ticks = mapping->loaded_ticks;
    message.unloaded_ticks = unloaded_ticks;
    return sj_emitter_send(roster->options.emitter, SJ_FRAME_MAPPING, &message.base, no_payload);
}

/* add_mapping keeps and sends one mapping; one that is known already is left as it is. */
sj_status sj_roster_add_mapping(sj_roster *roster, const sj_roster_mapping *mapping)
{
    for (size_t i = 0; i < roster->mapping_count; i++) {
        const sj_roster_mapping *known = &roster->mappings[i];
        if (known->process == mapping->process && known->module == mapping->module &&
            known->bias == mapping->bias) {
            return SJ_OK;
        }
    }
    sj_roster_mapping *added =
        append_entry(&roster->mappings, &roster->mapping_count, sizeof(*added));
    if (added == NULL) {
        return SJ_ENOMEM;
    }
    *added = *mapping;
    return send_mapping(roster, added, 0);
}

/* inherit_mappings: a forked child has the hooked modules of its parent and does not name them. */
static sj_status inherit_mappings(sj_roster *roster, uint64_t parent, uint64_t child,
                                  uint64_t now_ticks)
{
    const size_t count = roster->mapping_count;
    for (size_t i = 0; i < count; i++) {
        if (roster->mappings[i].process == parent) {
            sj_roster_mapping copy = roster->mappings[i];
            copy.process = child;
            copy.loaded_ticks = now_ticks;
            SJ_TRY(sj_roster_add_mapping(roster, &copy));
        }
    }
    return SJ_OK;
}

static sj_roster_process *find_living(sj_roster *roster, pid_t pid)
{
    for (size_t i = roster->process_count; i-- > 0;) {
        if (roster->processes[i].pid == pid && !roster->processes[i].ended) {
            return &roster->processes[i];
        }
    }
    return NULL;
}

static const char *occasion_text(sj_link_occasion occasion, bool is_first)
{
    switch (occasion) {
    case SJ_OCCASION_FORK:
        return "forked";
    case SJ_OCCASION_ATTACH:
        return "attached";
    default:
        return is_first ? "launched" : "exec";
    }
}

static sj_status add_process_locked(sj_roster *roster, pid_t pid, pid_t parent_pid,
                                    sj_link_occasion occasion, uint64_t now_ticks, uint64_t *number)
{
    sj_roster_process *previous = find_living(roster, pid);
    const sj_roster_process *parent = find_living(roster, parent_pid);
    const uint64_t parent_number = parent != NULL ? (uint64_t)(parent - roster->processes) + 1 : 0;
    uint64_t replaced = 0;
    if (previous != NULL) {
        replaced = (uint64_t)(previous - roster->processes) + 1;
        previous->ended = true;
        previous->end.ended_ticks = now_ticks;
        SJ_TRY(send_process(roster, previous));
    }
    sj_roster_process *entry =
        append_entry(&roster->processes, &roster->process_count, sizeof(*entry));
    if (entry == NULL) {
        return SJ_ENOMEM;
    }
    entry->pid = pid;
    entry->parent = replaced != 0 ? replaced : parent_number;
    entry->started_ticks = now_ticks;
    snprintf(entry->how, sizeof(entry->how), "%s",
             occasion_text(occasion, roster->process_count == 1));
    read_description(entry);
    roster->counters.processes++;
    *number = roster->process_count;
    SJ_TRY(send_process(roster, entry));
    return occasion == SJ_OCCASION_FORK
               ? inherit_mappings(roster, parent_number, *number, now_ticks)
               : SJ_OK;
}

sj_status sj_roster_add_process(sj_roster *roster, pid_t pid, pid_t parent_pid,
                                sj_link_occasion occasion, uint64_t now_ticks, uint64_t *number)
{
    pthread_mutex_lock(&roster->mutex);
    const sj_status status =
        add_process_locked(roster, pid, parent_pid, occasion, now_ticks, number);
    pthread_mutex_unlock(&roster->mutex);
    return status;
}

void sj_roster_note_arena(sj_roster *roster, uint64_t number, const char *arena_name)
{
    if (roster->options.journal == NULL) {
        return;
    }
    pthread_mutex_lock(&roster->mutex);
    const sj_roster_process *entry = &roster->processes[number - 1];
    sj_journal_process noted = {.number = number,
                                .parent = entry->parent,
                                .started_ticks = entry->started_ticks,
                                .pid = (uint32_t)entry->pid};
    memcpy(noted.how, entry->how, sizeof(noted.how));
    snprintf(noted.arena_name, sizeof(noted.arena_name), "%s", arena_name);
    sj_journal_add_process(roster->options.journal, &noted);
    pthread_mutex_unlock(&roster->mutex);
}

sj_status sj_roster_adopt_process(sj_roster *roster, const sj_journal_process *process)
{
    if (process->number <= roster->process_count ||
        process->number > roster->process_count + SJ_JOURNAL_PROCESSES) {
        return SJ_ECORRUPT;
    }
    while (roster->process_count < process->number) {
        sj_roster_process *entry =
            append_entry(&roster->processes, &roster->process_count, sizeof(*entry));
        if (entry == NULL) {
            return SJ_ENOMEM;
        }
        entry->ended = true; /* one between two that are known: never sent */
    }
    sj_roster_process *entry = &roster->processes[process->number - 1];
    entry->ended = false;
    entry->pid = (pid_t)process->pid;
    entry->parent = process->parent;
    entry->started_ticks = process->started_ticks;
    snprintf(entry->how, sizeof(entry->how), "%.*s", (int)sizeof(process->how) - 1, process->how);
    return SJ_OK;
}

sj_status sj_roster_find_process(sj_roster *roster, pid_t pid, uint64_t *number)
{
    pthread_mutex_lock(&roster->mutex);
    const sj_roster_process *entry = find_living(roster, pid);
    *number = entry != NULL ? (uint64_t)(entry - roster->processes) + 1 : 0;
    pthread_mutex_unlock(&roster->mutex);
    return entry != NULL ? SJ_OK : SJ_ENOTFOUND;
}

sj_status sj_roster_end_process(sj_roster *roster, uint64_t number, const sj_process_end *end)
{
    pthread_mutex_lock(&roster->mutex);
    sj_status status = SJ_ENOTFOUND;
    if (number != 0 && number <= roster->process_count) {
        sj_roster_process *entry = &roster->processes[number - 1];
        if (!entry->ended || entry->end.ended_ticks == 0) {
            entry->end.ended_ticks = end->ended_ticks;
        }
        if (end->has_status) {
            entry->end.has_status = true;
            entry->end.wait_status = end->wait_status;
        }
        if (end->disarm_reason != 0) {
            entry->end.disarm_reason = end->disarm_reason;
        }
        entry->ended = true;
        status = send_process(roster, entry);
    }
    pthread_mutex_unlock(&roster->mutex);
    return status;
}

static sj_roster_module *find_module(sj_roster *roster, const sj_link_module *module,
                                     const char *path, bool only_imports)
{
    for (size_t i = 0; i < roster->module_count; i++) {
        sj_roster_module *entry = &roster->modules[i];
        if (entry->build_id_bytes == module->build_id_bytes &&
            memcmp(entry->build_id, module->build_id, module->build_id_bytes) == 0 &&
            entry->is_main == (module->is_main != 0) && entry->only_imports == only_imports &&
            strcmp(entry->path, path) == 0) {
            return entry;
        }
    }
    return NULL;
}

static void note_plan_failure(sj_roster *roster, const char *path, const sj_error *error)
{
    if (roster->counters.plan_failures++ == 0) {
        snprintf(roster->counters.plan_failure, sizeof(roster->counters.plan_failure),
                 "%.200s: %.300s", path, error->text);
    }
}

const char *sj_roster_find_file(const sj_roster *roster, const char *path, char in_root[PATH_MAX])
{
    const char *sysroot = roster->options.sysroot;
    if (sysroot == NULL || sysroot[0] == '\0' ||
        snprintf(in_root, PATH_MAX, "%s%s", sysroot, path) >= PATH_MAX ||
        access(in_root, R_OK) != 0) {
        return path;
    }
    return in_root;
}

sj_status sj_roster_read_classes(sj_roster *roster, uint64_t process, const sj_link_module *module,
                                 const char *path)
{
    pthread_mutex_lock(&roster->mutex);
    const sj_selection *selection = roster->options.selection;
    const bool is_needed =
        roster->options.classes != NULL &&
        (selection->objc_receivers || sj_class_filter_needs_classes(&selection->objc)) &&
        (path == NULL || sj_selection_wants_module(selection, path, module->is_main != 0));
    const pid_t pid = process - 1 < roster->process_count ? roster->processes[process - 1].pid : 0;
    pthread_mutex_unlock(&roster->mutex);
    return is_needed ? sj_class_table_read_process(roster->options.classes, process, pid,
                                                   roster->options.sysroot)
                     : SJ_OK;
}

static sj_status make_plan(const sj_roster *roster, const sj_link_module *module, const char *path,
                           bool only_imports, sj_plan *plan, sj_error *error)
{
    char in_root[PATH_MAX];
    const sj_module_plan_options options = {.selection = roster->options.selection,
                                            .rules = roster->options.rules,
                                            .cache_directory = roster->options.cache_directory,
                                            .path = sj_roster_find_file(roster, path, in_root),
                                            .is_main = module->is_main != 0,
                                            .only_imports = only_imports};
    return sj_module_plan_make(&options, plan, error);
}

static sj_status add_module(sj_roster *roster, const sj_link_module *module, const char *path,
                            bool only_imports, const sj_plan *plan, sj_error *error,
                            sj_roster_module **added)
{
    const uint32_t count = plan->header->function_count;
    sj_roster_module *entry = append_entry(&roster->modules, &roster->module_count, sizeof(*entry));
    if (entry == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory for module %s", path);
    }
    memcpy(entry->build_id, module->build_id, module->build_id_bytes);
    entry->build_id_bytes = (uint8_t)module->build_id_bytes;
    entry->is_main = module->is_main != 0;
    entry->has_imports = roster->options.selection->library_calls;
    entry->only_imports = only_imports;
    entry->first_function = roster->next_function;
    entry->function_count = count;
    snprintf(entry->path, sizeof(entry->path), "%s", path);
    snprintf(entry->plan_path, sizeof(entry->plan_path), "%s/%zu.plan",
             roster->options.runtime_directory, roster->module_count);
    const sj_plan_function *functions = sj_plan_functions(plan->header);
    for (uint32_t i = 0; i < count; i++) {
        if (functions[i].skip != SJ_SKIP_NONE && functions[i].skip < SJ_ROSTER_SKIPS) {
            entry->skips[functions[i].skip]++;
        }
        if (roster->options.rules != NULL) {
            sj_rules_name(roster->options.rules, entry->first_function + i,
                          sj_plan_string(plan->header, functions[i].name));
        }
    }
    sj_status status = sj_plan_write(plan, entry->plan_path, error);
    if (status == SJ_OK && roster->options.selection->objc_receivers) {
        status = sj_method_names_add(&roster->method_names, plan->header, entry->first_function);
    }
    if (status == SJ_OK) {
        status = sj_module_frames_send(roster->options.emitter, plan->header, path,
                                       (uint32_t)roster->module_count, entry->first_function);
    }
    if (status != SJ_OK) {
        roster->module_count--;
        return sj_fail(error, status, "cannot announce module %s: %s", path,
                       sj_status_text(status));
    }
    /* At least one id, so that the first id names one module even when it has no functions. */
    roster->next_function += count != 0 ? count : 1;
    *added = entry;
    return SJ_OK;
}

static sj_status plan_new_module(sj_roster *roster, const sj_link_module *module, const char *path,
                                 bool only_imports, sj_roster_module **entry)
{
    sj_plan plan = {0};
    sj_error error = {0};
    const uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    sj_status status = make_plan(roster, module, path, only_imports, &plan, &error);
    if (status == SJ_OK &&
        (uint64_t)roster->next_function + plan.header->function_count > SJ_RECORD_FUNCTION_MASK) {
        status = sj_fail(&error, SJ_ELIMIT, "%s: the session has too many functions", path);
    }
    const bool is_empty = status == SJ_OK && only_imports && plan.header->function_count == 0;
    if (status == SJ_OK && !is_empty) {
        status = add_module(roster, module, path, only_imports, &plan, &error, entry);
    }
    roster->counters.plan_ns += sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    sj_plan_free(&plan);
    if (is_empty) {
        return SJ_EUNSUPPORTED;
    }
    if (status != SJ_OK) {
        note_plan_failure(roster, path, &error);
        return SJ_EUNSUPPORTED;
    }
    return SJ_OK;
}

static sj_status map_module(sj_roster *roster, uint64_t process, const sj_link_module *module,
                            const sj_roster_module *entry, uint64_t now_ticks)
{
    const sj_roster_mapping mapping = {.process = process,
                                       .bias = module->bias,
                                       .loaded_ticks = now_ticks,
                                       .module = (uint32_t)(entry - roster->modules) + 1};
    return sj_roster_add_mapping(roster, &mapping);
}

sj_status sj_roster_plan_locked(sj_roster *roster, uint64_t process, const sj_link_module *module,
                                const char *module_path, uint64_t now_ticks,
                                sj_roster_module **planned)
{
    if (roster->options.rules != NULL) {
        sj_rules_module(roster->options.rules, module_path);
    }
    if (!sj_selection_wants_module(roster->options.selection, module_path, module->is_main != 0)) {
        return SJ_EUNSUPPORTED;
    }
    sj_roster_module *entry = find_module(roster, module, module_path, false);
    if (entry == NULL) {
        SJ_TRY(plan_new_module(roster, module, module_path, false, &entry));
    }
    *planned = entry;
    return map_module(roster, process, module, entry, now_ticks);
}

sj_status sj_roster_plan_imports_locked(sj_roster *roster, uint64_t process,
                                        const sj_link_module *module, const char *module_path,
                                        uint64_t now_ticks, sj_roster_module **planned)
{
    const sj_selection *selection = roster->options.selection;
    const sj_roster_module *whole = find_module(roster, module, module_path, false);
    if (!selection->library_calls || whole == NULL || whole->has_imports ||
        !sj_selection_wants_module(selection, module_path, module->is_main != 0)) {
        return SJ_EUNSUPPORTED;
    }
    sj_roster_module *entry = find_module(roster, module, module_path, true);
    if (entry == NULL) {
        SJ_TRY(plan_new_module(roster, module, module_path, true, &entry));
    }
    *planned = entry;
    return map_module(roster, process, module, entry, now_ticks);
}

sj_status sj_roster_plan_module(sj_roster *roster, uint64_t process, const sj_link_module *module,
                                const char *module_path, uint64_t now_ticks,
                                uint32_t *first_function, char *path, size_t capacity)
{
    sj_roster_module *entry = NULL;
    SJ_TRY(sj_roster_read_classes(roster, process, module, module_path));
    pthread_mutex_lock(&roster->mutex);
    const sj_status status =
        sj_roster_plan_locked(roster, process, module, module_path, now_ticks, &entry);
    if (status == SJ_OK) {
        *first_function = entry->first_function;
        snprintf(path, capacity, "%s", entry->plan_path);
    }
    pthread_mutex_unlock(&roster->mutex);
    return status;
}

sj_status sj_roster_add_group(sj_roster *roster, const sj_roster_mapping *mapping,
                              const sj_plan_header *group, const char *path,
                              uint32_t *first_function)
{
    if ((uint64_t)roster->next_function + group->function_count > SJ_RECORD_FUNCTION_MASK) {
        return SJ_ELIMIT;
    }
    sj_roster_module *entry = append_entry(&roster->modules, &roster->module_count, sizeof(*entry));
    if (entry == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(entry->build_id, group->build_id, group->build_id_bytes);
    entry->build_id_bytes = group->build_id_bytes;
    entry->first_function = roster->next_function;
    entry->function_count = group->function_count;
    snprintf(entry->path, sizeof(entry->path), "%s", path);
    const sj_status status =
        sj_module_frames_send(roster->options.emitter, group, path, (uint32_t)roster->module_count,
                              entry->first_function);
    if (status != SJ_OK) {
        roster->module_count--;
        return status;
    }
    roster->next_function += group->function_count;
    *first_function = entry->first_function;
    sj_roster_mapping made = *mapping;
    made.module = (uint32_t)roster->module_count;
    return sj_roster_add_mapping(roster, &made);
}

sj_status sj_roster_learn_class(sj_roster *roster, uint64_t process, sj_slice lineage)
{
    SJ_TRY(sj_roster_read_classes(roster, process, NULL, NULL));
    return roster->options.classes != NULL ? sj_class_table_learn(roster->options.classes, lineage)
                                           : SJ_OK;
}

sj_status sj_roster_add_methods(sj_roster *roster, uint64_t process, const char *path,
                                sj_slice names, uint32_t count, uint64_t now_ticks,
                                uint32_t *first_function, uint8_t *wanted)
{
    sj_plan_header *group = NULL;
    const sj_roster_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    pthread_mutex_lock(&roster->mutex);
    sj_status status =
        sj_method_group_make(roster->options.selection, path, names, count, wanted, &group);
    if (status != SJ_OK) {
        pthread_mutex_unlock(&roster->mutex);
        return status;
    }
    status = sj_roster_add_group(roster, &mapping, group, path, first_function);
    roster->counters.modules += status == SJ_OK ? 1 : 0;
    roster->counters.functions += status == SJ_OK ? count : 0;
    for (uint32_t i = 0; i < count && status == SJ_OK; i++) {
        const uint32_t skip = sj_plan_functions(group)[i].skip;
        roster->counters.hooked += wanted[i];
        roster->counters.filtered += skip == SJ_SKIP_FILTERED;
        roster->counters.skips[skip] += skip != SJ_SKIP_NONE;
    }
    pthread_mutex_unlock(&roster->mutex);
    free(group);
    return status;
}

static sj_roster_module *module_of_function(sj_roster *roster, uint32_t first_function)
{
    for (size_t i = 0; i < roster->module_count; i++) {
        if (roster->modules[i].first_function == first_function) {
            return &roster->modules[i];
        }
    }
    return NULL;
}

/* count_applied adds a module to the figures of the summary, once per session. Cold parts are no
 * functions: they count with the function that they belong to. */
static void count_applied(sj_roster *roster, sj_roster_module *entry,
                          const sj_link_applied *applied, const sj_link_failure *failures,
                          size_t failure_count)
{
    sj_roster_counters *counters = &roster->counters;
    counters->hook_ns += applied->elapsed_ns;
    if (entry->counted) {
        return;
    }
    entry->counted = true;
    counters->modules += entry->only_imports ? 0 : 1;
    counters->functions += entry->function_count - entry->skips[SJ_SKIP_COLD_PART];
    counters->hooked += applied->hooked;
    counters->failed += applied->failed;
    for (size_t i = 0; i < SJ_ROSTER_SKIPS; i++) {
        counters->skips[i] += i == SJ_SKIP_COLD_PART ? 0 : entry->skips[i];
    }
    counters->filtered += entry->skips[SJ_SKIP_FILTERED];
    for (size_t i = 0; i < failure_count; i++) {
        counters->skips[failures[i].skip < SJ_ROSTER_SKIPS ? failures[i].skip : 0]++;
    }
}

sj_status sj_roster_send_unhooked(sj_roster *roster, uint64_t process,
                                  const sj_roster_module *entry, const sj_link_failure *failures,
                                  size_t count)
{
    uint32_t functions[UNHOOKED_PER_FRAME];
    uint32_t skips[UNHOOKED_PER_FRAME];
    Sojourn__Unhooked message = SOJOURN__UNHOOKED__INIT;
    message.session_id = sj_emitter_session_bytes(roster->options.emitter);
    message.process = process;
    message.module = (uint32_t)(entry - roster->modules) + 1;
    message.function = functions;
    message.skip = skips;
    for (size_t i = 0; i < count; i++) {
        if (failures[i].function < entry->function_count) {
            functions[message.n_function] = entry->first_function + failures[i].function;
            skips[message.n_function++] = failures[i].skip;
        }
        if (message.n_function == UNHOOKED_PER_FRAME ||
            (i + 1 == count && message.n_function != 0)) {
            message.n_skip = message.n_function;
            SJ_TRY(sj_emitter_send(roster->options.emitter, SJ_FRAME_UNHOOKED, &message.base,
                                   no_payload));
            message.n_function = 0;
        }
    }
    return SJ_OK;
}

sj_status sj_roster_applied(sj_roster *roster, uint64_t process, const sj_link_applied *applied,
                            const sj_link_failure *failures, size_t failure_count)
{
    pthread_mutex_lock(&roster->mutex);
    sj_status status = SJ_ENOTFOUND;
    sj_roster_module *entry = module_of_function(roster, applied->first_function);
    if (entry != NULL) {
        count_applied(roster, entry, applied, failures, failure_count);
        status = sj_roster_send_unhooked(roster, process, entry, failures, failure_count);
    }
    pthread_mutex_unlock(&roster->mutex);
    return status;
}

sj_status sj_roster_unloaded(sj_roster *roster, uint64_t process, uint64_t bias, uint64_t now_ticks)
{
    pthread_mutex_lock(&roster->mutex);
    sj_status status = SJ_ENOTFOUND;
    for (size_t i = roster->mapping_count; i-- > 0;) {
        sj_roster_mapping *mapping = &roster->mappings[i];
        if (mapping->process == process && mapping->bias == bias) {
            status = send_mapping(roster, mapping, now_ticks);
            *mapping = roster->mappings[--roster->mapping_count];
        }
    }
    pthread_mutex_unlock(&roster->mutex);
    return status;
}

size_t sj_roster_list_living(sj_roster *roster, pid_t *pids, size_t capacity)
{
    size_t count = 0;
    pthread_mutex_lock(&roster->mutex);
    for (size_t i = 0; i < roster->process_count && count < capacity; i++) {
        if (!roster->processes[i].ended) {
            pids[count++] = roster->processes[i].pid;
        }
    }
    pthread_mutex_unlock(&roster->mutex);
    return count;
}

sj_status sj_roster_index_functions(sj_roster *roster, uint64_t process, sj_function_index *index)
{
    sj_status status = SJ_OK;
    *index = (sj_function_index){0};
    pthread_mutex_lock(&roster->mutex);
    for (size_t i = 0; i < roster->mapping_count && status == SJ_OK; i++) {
        const sj_roster_mapping *mapping = &roster->mappings[i];
        const sj_roster_module *module = &roster->modules[mapping->module - 1];
        if (mapping->process == process) {
            status = sj_function_index_add(index, module->plan_path, mapping->bias,
                                           module->first_function);
        }
    }
    pthread_mutex_unlock(&roster->mutex);
    sj_function_index_finish(index);
    return status;
}

void sj_roster_get_counters(sj_roster *roster, sj_roster_counters *counters)
{
    pthread_mutex_lock(&roster->mutex);
    *counters = roster->counters;
    pthread_mutex_unlock(&roster->mutex);
}

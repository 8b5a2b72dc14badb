/* Tests plans of the samples. An independent disassembly checks the windows, and the linker's
 * relocations check the jump tables. Also tests map files, the cache, and damaged plans. */
#include "agent/abi/plan_crc.h"
#include "agent/abi/skip_text.h"
#include "agent/planner/machine.h"
#include "agent/planner/module.h"
#include "agent/planner/planner.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <Zydis/Zydis.h>

static sj_plan plan_of(const char *path, const char *map, const char *cache)
{
    const sj_planner_options options = {
        .module_path = path, .map_file = map, .cache_directory = cache};
    sj_plan plan;
    sj_error error = {0};
    if (sj_plan_make(&options, &plan, &error) != SJ_OK) {
        fail_msg("%s: %s", path, error.text);
    }
    assert_int_equal(sj_plan_check(plan.header, plan.size_bytes), SJ_OK);
    return plan;
}

static sj_status refuse_values(void *context, const char *name, uint64_t offset, uint8_t *places)
{
    (void)name, (void)offset, (void)places;
    return *(const sj_status *)context;
}

static void the_error_of_a_selection_names_its_cause(void **state)
{
    static const sj_status causes[] = {SJ_ENOMEM, SJ_ELIMIT, SJ_EIO};
    (void)state;
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        const sj_planner_options options = {.module_path = "/proc/self/exe",
                                            .values = refuse_values,
                                            .context = (void *)(uintptr_t)&causes[i]};
        sj_plan plan;
        sj_error error = {0};
        assert_int_equal(sj_plan_make(&options, &plan, &error), causes[i]);
        assert_non_null(strstr(error.text, sj_status_text(causes[i])));
    }
}

/* Compares plans byte by byte. Plans of large programs are made in pieces. */
static void plans_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static const char *const modules[] = {PLANNER_SAMPLES "/proc/self/exe", "/usr/bin/git",
                                          "/usr/bin/perl", "/usr/bin/python3.11",
                                          "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"};
    enum { ALL = sizeof(modules) / sizeof(modules[0]), FEWER = ALL - 3 };
    const size_t count = getenv("SJ_LONG") != NULL ? ALL : FEWER;
    unsigned planned = 0;
    for (size_t i = 0; i < count; i++) {
        sj_planner_options options = {.module_path = modules[i], .library_calls = true};
        sj_plan alone;
        if (sj_plan_make(&options, &alone, NULL) != SJ_OK) {
            continue; /* not installed */
        }
        for (options.threads = 2; options.threads <= 32; options.threads *= 4) {
            sj_plan plan;
            assert_int_equal(sj_plan_make(&options, &plan, NULL), SJ_OK);
            assert_int_equal(plan.size_bytes, alone.size_bytes);
            assert_memory_equal(plan.header, alone.header, alone.size_bytes);
            sj_plan_free(&plan);
        }
        sj_plan_free(&alone);
        planned++;
    }
    assert_true(planned > 20);
}

static const sj_plan_function *find_function(const sj_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan->header)[i];
        if (strcmp(sj_plan_string(plan->header, function->name), name) == 0) {
            return function;
        }
    }
    return NULL;
}

/* Marks the targets of relative branches, and the addresses after calls, with a full decoder over
 * all functions of the plan. */
static void mark_branches(const sj_plan *plan, const sj_elf *elf, uint8_t *is_target)
{
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    const uint64_t low = plan->header->text_low;
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan->header)[i];
        const sj_slice bytes = sj_elf_at(elf, function->offset);
        for (uint32_t at = 0; at < function->size;) {
            ZydisDecodedInstruction decoded;
            ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
            if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data + at, bytes.size - at,
                                                     &decoded, operands))) {
                break;
            }
            ZyanU64 target;
            if (decoded.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
                operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
                ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&decoded, &operands[0], function->offset + at,
                                                      &target)) &&
                target >= low && target < plan->header->text_high) {
                is_target[target - low] = 1;
            }
            at += decoded.length;
            if (decoded.meta.category == ZYDIS_CATEGORY_CALL) {
                is_target[function->offset + at - low] = 1;
            }
        }
    }
}

static void patch_windows_are_disjoint_and_free_of_branch_targets(void **state)
{
    (void)state;
    static const char *const samples[] = {PLANNER_SAMPLES PLANNER_SAMPLE_DIR "/shapes"};
    for (size_t s = 0; s < sizeof(samples) / sizeof(samples[0]); s++) {
        sj_plan plan = plan_of(samples[s], NULL, NULL);
        const size_t bytes = (size_t)(plan.header->text_high - plan.header->text_low) + 16;
        uint8_t *is_target = calloc(2, bytes);
        uint8_t *is_taken = is_target + bytes;
        sj_elf elf;
        assert_int_equal(sj_elf_open(samples[s], &elf, NULL), SJ_OK);
        mark_branches(&plan, &elf, is_target);
        for (uint32_t i = 0; i < plan.header->patch_count; i++) {
            const sj_plan_patch *patch = &sj_plan_patches(plan.header)[i];
            const uint64_t at = patch->offset - plan.header->text_low;
            assert_memory_equal(sj_elf_at(&elf, patch->offset).data, patch->original,
                                patch->window);
            for (unsigned k = 0; k < patch->window; k++) {
                assert_int_equal(is_taken[at + k], 0);
                is_taken[at + k] = 1;
                const bool stays = patch->kind == SJ_PATCH_JUMP8 && k >= patch->bytes;
                assert_true(k == 0 || (stays && patch->bytes == 1) || is_target[at + k] == 0);
            }
        }
        assert_true(plan.header->patch_count > 10);
        sj_elf_close(&elf);
        free(is_target);
        sj_plan_free(&plan);
    }
}

/* The linker kept its relocations. Each relocation from read-only data into code is a place that a
 * jump may lead to, and must be marked. */
static size_t check_truth(const char *path)
{
    const sj_planner_options options = {.module_path = path};
    sj_module module = {0};
    size_t checked = 0;
    assert_int_equal(sj_module_load(&options, sj_machine_of, &module, NULL), SJ_OK);
    assert_int_equal(sj_module_find_ranges(&module), SJ_OK);
    assert_int_equal(sj_module_find_targets(&module), SJ_OK);
    const sj_elf_section *section = sj_elf_find_section(&module.elf, ".rela.rodata");
    const sj_elf_section *symbols = sj_elf_find_section(&module.elf, ".symtab");
    assert_non_null(section);
    const sj_slice bytes = sj_elf_section_bytes(&module.elf, section);
    const sj_slice table = sj_elf_section_bytes(&module.elf, symbols);
    for (size_t i = 0; i < bytes.size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela relocation;
        Elf64_Sym symbol;
        memcpy(&relocation, bytes.data + i * sizeof(relocation), sizeof(relocation));
        memcpy(&symbol, table.data + ELF64_R_SYM(relocation.r_info) * sizeof(symbol),
               sizeof(symbol));
        const uint64_t value = symbol.st_value;
        if (value < module.text_low || value - module.text_low >= module.text_bytes) {
            continue;
        }
        /* The relocated field holds target - start of its table. The relocation holds what the
         * linker wrote: the symbol (a section or function), and an addend that includes the
         * distance of the field from the table. The test finds that distance by trying the marked
         * targets. */
        if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_64) {
            const uint64_t target = value + (uint64_t)relocation.r_addend - module.text_low;
            assert_true(sj_bit_get(module.targets, (uint32_t)target));
            checked++;
        } else if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_PC32) {
            const sj_slice field = sj_elf_at(&module.elf, relocation.r_offset);
            int32_t distance;
            memcpy(&distance, field.data, sizeof(distance));
            bool is_found = false;
            for (uint64_t base = relocation.r_offset; base + 512 > relocation.r_offset; base -= 4) {
                const uint64_t target = base + (uint64_t)(int64_t)distance - module.text_low;
                /* target = symbol + addend - (field - base) */
                if (target == value + (uint64_t)relocation.r_addend - (relocation.r_offset - base) -
                                  module.text_low &&
                    target < module.text_bytes &&
                    sj_bit_get(module.table_entries, (uint32_t)target)) {
                    is_found = true;
                    break;
                }
            }
            assert_true(is_found);
            checked++;
        }
    }
    sj_module_close(&module);
    return checked;
}

static void every_jump_table_entry_of_the_linker_is_a_target(void **state)
{
    (void)state;
    assert_true(check_truth(PLANNER_SAMPLE_DIR "/sample-gcc-relocs") >= 8);
    assert_true(check_truth(PLANNER_SAMPLE_DIR "/sample-clang-relocs") >= 8);
    assert_true(check_truth(PLANNER_SAMPLE_DIR "/sample-gcc-fixed") >= 8);
}

static void assert_hooked(const sj_plan *plan, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const sj_plan_function *function = find_function(plan, names[i]);
        assert_non_null(function);
        if (function->technique == SJ_TECHNIQUE_NONE) {
            fail_msg("%s: %s", names[i], sj_skip_text(function->skip));
        }
    }
}

/* The preload test runs these functions: same output, as many exits as entries. */
static void rare_shapes_of_code_are_hooked(void **state)
{
    (void)state;
    static const char *const names[] = {
        "crowded",     "tiny_zero",   "tiny_same",           "tiny_next",
        "long_before", "long_behind", "number_like_a_label", "tail_through",
        "other",       "never_taken", "never_taken_deep",    "punned"};
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/shapes", NULL, NULL);
    assert_hooked(&plan, names, sizeof(names) / sizeof(names[0]));
    sj_plan_free(&plan);
}

/* Counts the probes of a function that may change the flags: entries and exits. */
static void count_free_flags(const sj_plan *plan, const char *name, uint32_t *entries,
                             uint32_t *exits)
{
    const sj_plan_header *header = plan->header;
    const sj_plan_function *function = find_function(plan, name);
    assert_non_null(function);
    *entries = 0;
    *exits = 0;
    for (uint32_t i = 0; i < header->stub_count; i++) {
        const sj_plan_stub *stub = &sj_plan_stubs(header)[i];
        const uint8_t *operations =
            (const uint8_t *)header + header->operations_offset + stub->operations;
        if (&sj_plan_functions(header)[stub->function] != function) {
            continue;
        }
        /* Copied instructions may hold the same bytes, but not in these functions. */
        for (uint32_t at = 0; at + 1 < stub->operations_bytes; at++) {
            *entries += operations[at] == SJ_OPERATION_FREE_FLAGS &&
                        operations[at + 1] == SJ_OPERATION_ENTER;
            *exits += operations[at] == SJ_OPERATION_FREE_FLAGS &&
                      operations[at + 1] == SJ_OPERATION_LEAVE;
        }
    }
}

/* Returns the function that a stub of `name` tail-calls, or NULL. The function's number must fit
 * into one byte. */
static const sj_plan_function *callee_of(const sj_plan *plan, const char *name)
{
    const sj_plan_header *header = plan->header;
    const sj_plan_function *caller = find_function(plan, name);
    assert_non_null(caller);
    assert_true(header->function_count < 128);
    for (uint32_t i = 0; i < header->stub_count; i++) {
        const sj_plan_stub *stub = &sj_plan_stubs(header)[i];
        const uint8_t *end = (const uint8_t *)header + header->operations_offset +
                             stub->operations + stub->operations_bytes;
        if (&sj_plan_functions(header)[stub->function] == caller && stub->operations_bytes >= 2 &&
            end[-2] == SJ_OPERATION_TAIL_CALL) {
            return &sj_plan_functions(header)[end[-1]];
        }
    }
    return NULL;
}

/* A jump to a function that reads the flags is not a tail call, because the callee's entry stub
 * does not keep the flags. */
static void jumps_to_functions_are_tail_calls(void **state)
{
    (void)state;
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/shapes", NULL, NULL);
    assert_ptr_equal(callee_of(&plan, "jumps"), find_function(&plan, "below_jumped"));
    assert_null(callee_of(&plan, "gives_by_jump"));
    assert_null(callee_of(&plan, "below_jumped"));
    sj_plan_free(&plan);
}

/* The preload test shows that the other flags must be kept: it inverts the free flags. */
static void flags_are_kept_where_they_are_read_only(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t entries;
        uint32_t exits;
    } wanted[] = {{"tiny_zero", 1, 1},  {"long_behind", 1, 1},   {"below_plain", 1, 0},
                  {"asks", 1, 1},       {"below_handed", 1, 0},  {"hands_on", 1, 0},
                  {"jumps", 1, 0},      {"below_jumped", 1, 0},  {"below_pointed", 1, 0},
                  {"below_late", 1, 0}, {"below_side", 1, 0},    {"takes", 0, 1},
                  {"gives", 1, 1},      {"gives_by_jump", 1, 0}, {"takes_jump", 0, 1}};
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/shapes", NULL, NULL);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        uint32_t entries;
        uint32_t exits;
        count_free_flags(&plan, wanted[i].name, &entries, &exits);
        if (entries != wanted[i].entries || exits != wanted[i].exits) {
            fail_msg("%s: %u entries and %u exits free", wanted[i].name, entries, exits);
        }
    }
    sj_plan_free(&plan);
}

/* Browsers have hundreds of megabytes that are in no known function. */
static void a_large_text_without_rules_is_not_read_for_the_flags(void **state)
{
    (void)state;
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/large", NULL, NULL);
    assert_true(find_function(&plan, "tiny_zero")->technique != SJ_TECHNIQUE_NONE);
    for (uint32_t i = 0; i < plan.header->function_count; i++) {
        uint32_t entries;
        uint32_t exits;
        const sj_plan_function *function = &sj_plan_functions(plan.header)[i];
        count_free_flags(&plan, sj_plan_string(plan.header, function->name), &entries, &exits);
        assert_int_equal(entries + exits, 0);
    }
    sj_plan_free(&plan);
}

static void flags_are_kept_behind_the_tables_of_a_library(void **state)
{
    (void)state;
    static const char *const names[] = {"below_name", "below_slot"};
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/flags.so", NULL, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint32_t entries;
        uint32_t exits;
        count_free_flags(&plan, names[i], &entries, &exits);
        assert_int_equal(entries, 1);
        assert_int_equal(exits, 0);
    }
    sj_plan_free(&plan);
}

/* A jump of one byte is valid only while the next byte is the distance to its island. */
static void a_one_byte_jump_is_followed_by_its_distance(void **state)
{
    (void)state;
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/shapes", NULL, NULL);
    const sj_plan_function *function = find_function(&plan, "punned");
    sj_plan_header *header = (sj_plan_header *)(uintptr_t)plan.header;
    sj_plan_patch *pun = NULL;
    for (uint32_t i = 0; i < function->patch_count; i++) {
        const sj_plan_patch *patch = &sj_plan_patches(header)[function->first_patch + i];
        if (patch->kind == SJ_PATCH_JUMP8 && patch->bytes == 1) {
            pun = (sj_plan_patch *)(uintptr_t)patch;
        }
    }
    assert_non_null(pun);
    const sj_plan_patch *island = &sj_plan_patches(header)[pun->via];
    assert_int_equal(pun->window, 2);
    assert_int_equal(pun->original[0], 0xc3);
    assert_int_equal(pun->original[1], 0x48);
    assert_int_equal(island->offset, pun->offset + 2 + 0x48);
    pun->original[1]++;
    header->crc32c = sj_plan_crc(header, plan.size_bytes);
    assert_int_equal(sj_plan_check(header, plan.size_bytes), SJ_ECORRUPT);
    sj_plan_free(&plan);
}

static void optimized_samples_hook_the_hard_functions(void **state)
{
    (void)state;
    static const char *const names[] = {"tail_indirect",   "tail_conditional", "big_switch",
                                        "head_loop",       "fibonacci",        "empty_function",
                                        "tail_behind_sum", "early_return"};
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/sample-gcc-O2", NULL, NULL);
    assert_hooked(&plan, names, sizeof(names) / sizeof(names[0]));
    static const char *const support[] = {"_start", "_init", "_fini", "frame_dummy",
                                          "register_tm_clones"};
    for (size_t i = 0; i < sizeof(support) / sizeof(support[0]); i++) {
        assert_non_null(find_function(&plan, support[i]));
        assert_int_equal(find_function(&plan, support[i])->skip, SJ_SKIP_RUNTIME_SUPPORT);
    }
    sj_plan_free(&plan);
}

static void functions_with_false_tables_are_skipped_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        sj_skip skip;
    } liars[] = {{"first_of_two", SJ_SKIP_OVERLAP},
                 {"second_of_two", SJ_SKIP_OVERLAP},
                 {"without_rules", SJ_SKIP_NO_CFI},
                 {"longer_than_its_rules", SJ_SKIP_NO_CFI},
                 {"past_the_end", SJ_SKIP_OUT_OF_TEXT}};
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/liars", NULL, NULL);
    for (size_t i = 0; i < sizeof(liars) / sizeof(liars[0]); i++) {
        const sj_plan_function *function = find_function(&plan, liars[i].name);
        assert_non_null(function);
        assert_int_equal(function->technique, SJ_TECHNIQUE_NONE);
        assert_int_equal(function->skip, liars[i].skip);
    }
    static const char *const honest[] = {"bystander", "main"};
    assert_hooked(&plan, honest, sizeof(honest) / sizeof(honest[0]));
    sj_plan_free(&plan);
}

static uint32_t count_imports(const char *path, bool library_calls, const char *name,
                              const sj_plan_function **found, sj_plan *plan)
{
    const sj_planner_options options = {.module_path = path, .library_calls = library_calls};
    uint32_t count = 0;
    assert_int_equal(sj_plan_make(&options, plan, NULL), SJ_OK);
    assert_int_equal(sj_plan_check(plan->header, plan->size_bytes), SJ_OK);
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan->header)[i];
        count += function->source == SJ_SYMBOL_IMPORT ? 1 : 0;
    }
    *found = find_function(plan, name);
    return count;
}

/* A plan of the imports alone equals the last functions of a plan with library calls. */
static void a_plan_of_imports_alone_equals_that_part_of_the_whole_plan(void **state)
{
    (void)state;
    sj_planner_options options = {.module_path = PLANNER_SAMPLE_DIR "/sample-gcc-O2",
                                  .library_calls = true};
    sj_plan whole;
    sj_plan alone;
    assert_int_equal(sj_plan_make(&options, &whole, NULL), SJ_OK);
    options.only_imports = true;
    assert_int_equal(sj_plan_make(&options, &alone, NULL), SJ_OK);
    assert_int_equal(sj_plan_check(alone.header, alone.size_bytes), SJ_OK);
    const uint32_t count = alone.header->function_count;
    assert_true(count >= 5 && count < whole.header->function_count);
    const sj_plan_function *last = sj_plan_functions(whole.header) + whole.header->function_count;
    for (uint32_t i = 0; i < count; i++) {
        const sj_plan_function *function = &sj_plan_functions(alone.header)[i];
        assert_int_equal(function->source, SJ_SYMBOL_IMPORT);
        assert_int_equal(function->offset, last[(int64_t)i - count].offset);
        assert_int_equal(function->technique, last[(int64_t)i - count].technique);
        assert_int_equal(function->skip, last[(int64_t)i - count].skip);
    }
    assert_int_not_equal(last[-(int64_t)count - 1].source, SJ_SYMBOL_IMPORT);
    sj_plan_free(&alone);
    sj_plan_free(&whole);
}

static void imports_are_planned_when_asked_for(void **state)
{
    (void)state;
    const sj_plan_function *function;
    sj_plan plan;
    assert_int_equal(count_imports(PLANNER_SAMPLE_DIR "/sample-gcc-O2", false, "libc.so.6!qsort",
                                   &function, &plan),
                     0);
    assert_null(function);
    sj_plan_free(&plan);
    assert_true(count_imports(PLANNER_SAMPLE_DIR "/sample-gcc-O2", true, "libc.so.6!qsort",
                              &function, &plan) >= 5);
    assert_non_null(function);
    assert_int_equal(function->technique, SJ_TECHNIQUE_GOT);
    const sj_plan_patch *patch = &sj_plan_patches(plan.header)[function->first_patch];
    assert_int_equal(patch->kind, SJ_PATCH_SLOT);
    assert_int_equal(patch->offset, function->offset);
    const sj_plan_function *twice = find_function(&plan, "libc.so.6!_setjmp");
    assert_non_null(twice);
    assert_int_equal(twice->skip, SJ_SKIP_CALLER_MATTERS);
    sj_plan_free(&plan);
}

static void map_files_name_the_functions_of_stripped_programs(void **state)
{
    (void)state;
    static const char *const samples[] = {PLANNER_SAMPLE_DIR "/sample-gcc-map",
                                          PLANNER_SAMPLE_DIR "/sample-lld-map"};
    static const char *const maps[] = {PLANNER_SAMPLE_DIR "/gcc.map",
                                       PLANNER_SAMPLE_DIR "/lld.map"};
    for (unsigned i = 0; i < 2; i++) {
        sj_plan plan = plan_of(samples[i], NULL, NULL);
        assert_null(find_function(&plan, "fibonacci"));
        sj_plan_free(&plan);
        plan = plan_of(samples[i], maps[i], NULL);
        const sj_plan_function *function = find_function(&plan, "fibonacci");
        assert_non_null(function);
        assert_int_equal(function->source, SJ_SYMBOL_MAP_FILE);
        assert_int_not_equal(function->technique, SJ_TECHNIQUE_NONE);
        sj_plan_free(&plan);
    }
}

static void symbols_that_were_split_off_are_found(void **state)
{
    (void)state;
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/sample-debuglink", NULL, NULL);
    assert_non_null(find_function(&plan, "fibonacci"));
    assert_int_equal(find_function(&plan, "fibonacci")->source, SJ_SYMBOL_DEBUG_FILE);
    sj_plan_free(&plan);
    plan = plan_of(PLANNER_SAMPLE_DIR "/sample-minidebug", NULL, NULL);
    assert_non_null(find_function(&plan, "fibonacci"));
    assert_int_equal(find_function(&plan, "fibonacci")->source, SJ_SYMBOL_MINI_DEBUG_INFO);
    sj_plan_free(&plan);
    plan = plan_of(PLANNER_SAMPLE_DIR "/sample-gcc-stripped", NULL, NULL);
    assert_null(find_function(&plan, "fibonacci"));
    sj_plan_free(&plan);
}

static void flipped_bytes_of_a_plan_are_noticed(void **state)
{
    (void)state;
    sj_plan plan = plan_of(PLANNER_SAMPLE_DIR "/sample-gcc-O2", NULL, NULL);
    uint8_t *copy = malloc(plan.size_bytes);
    memcpy(copy, plan.header, plan.size_bytes);
    for (size_t i = 0; i < plan.size_bytes; i++) {
        copy[i] ^= 0x10;
        assert_int_not_equal(sj_plan_check(copy, plan.size_bytes), SJ_OK);
        copy[i] ^= 0x10;
    }
    for (size_t size = 0; size < plan.size_bytes; size += 7) {
        assert_int_not_equal(sj_plan_check(copy, size), SJ_OK);
    }
    free(copy);
    sj_plan_free(&plan);
}

static void a_damaged_cached_plan_is_replaced(void **state)
{
    (void)state;
    char folder[] = "planner_cache.XXXXXX";
    char path[600] = "";
    assert_non_null(mkdtemp(folder));
    const char *const sample = PLANNER_SAMPLE_DIR "/sample-gcc-O2";
    sj_plan plan = plan_of(sample, NULL, folder);
    assert_false(plan.from_cache);
    sj_plan_free(&plan);
    plan = plan_of(sample, NULL, folder);
    assert_true(plan.from_cache);
    sj_plan_free(&plan);
    DIR *directory = opendir(folder);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.') {
            assert_string_equal(path, ""); /* no temporary file is left */
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        }
    }
    closedir(directory);
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(file, "damaged", 7, 300), 7);
    close(file);
    plan = plan_of(sample, NULL, folder);
    assert_false(plan.from_cache);
    sj_plan_free(&plan);
    plan = plan_of(sample, NULL, folder);
    assert_true(plan.from_cache);
    sj_plan_free(&plan);
    unlink(path);
    rmdir(folder);
}

static bool want_fibonacci(void *context, const char *name, uint64_t offset, uint32_t size)
{
    (void)context;
    return offset > 0 && size > 0 && strcmp(name, "fibonacci") == 0;
}

static void unwanted_functions_are_listed_as_filtered(void **state)
{
    (void)state;
    const sj_planner_options options = {.module_path = PLANNER_SAMPLE_DIR "/sample-gcc-O2",
                                        .wanted = want_fibonacci};
    sj_plan plan;
    assert_int_equal(sj_plan_make(&options, &plan, NULL), SJ_OK);
    assert_true(sj_plan_is_hooked(find_function(&plan, "fibonacci")));
    assert_int_equal(find_function(&plan, "big_switch")->skip, SJ_SKIP_FILTERED);
    assert_false(sj_plan_is_hooked(find_function(&plan, "big_switch")));
    sj_plan_free(&plan);
}

static bool want_others(void *context, const char *name, uint64_t offset, uint32_t size)
{
    return !want_fibonacci(context, name, offset, size);
}

static bool want_all(void *context, const char *name, uint64_t offset, uint32_t size)
{
    (void)context;
    (void)name;
    return offset != UINT64_MAX && size != UINT32_MAX;
}

static void another_selection_makes_the_plan_that_it_would_have_made(void **state)
{
    (void)state;
    bool changed = false;
    char folder[] = "/tmp/sj-plan-XXXXXX";
    char command[64];
    assert_non_null(mkdtemp(folder));
    sj_planner_options options = {.module_path = PLANNER_SAMPLE_DIR "/sample-gcc-O2",
                                  .cache_directory = folder};
    sj_plan all;
    sj_plan selected;
    assert_int_equal(sj_plan_make(&options, &all, NULL), SJ_OK);
    options.wanted = want_fibonacci; /* maps the same cached plan */
    assert_int_equal(sj_plan_make(&options, &selected, NULL), SJ_OK);
    assert_true(selected.from_cache);
    assert_int_equal(sj_plan_select(&selected, want_others, NULL, &changed), SJ_OK);
    assert_true(changed);
    assert_int_equal(find_function(&selected, "fibonacci")->skip, SJ_SKIP_FILTERED);
    assert_true(sj_plan_is_hooked(find_function(&selected, "big_switch")));
    assert_int_equal(sj_plan_check(selected.header, selected.size_bytes), SJ_OK);
    assert_int_equal(sj_plan_select(&selected, want_all, NULL, &changed), SJ_OK);
    assert_int_equal(selected.size_bytes, all.size_bytes);
    assert_memory_equal(selected.header, all.header, all.size_bytes);
    assert_int_equal(sj_plan_select(&selected, want_all, NULL, &changed), SJ_OK);
    assert_false(changed);
    sj_plan_free(&selected);
    sj_plan_free(&all);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    sj_plan plan;
    sj_error error;
    sj_planner_options options = {.module_path = "no/such/file"};
    assert_int_equal(sj_plan_make(&options, &plan, &error), SJ_ENOTFOUND);
    options.module_path = PLANNER_SAMPLE_DIR "/gcc.map";
    assert_int_equal(sj_plan_make(&options, &plan, &error), SJ_EUNSUPPORTED);
    options.module_path = PLANNER_SAMPLE_DIR "/sample-gcc-O2";
    options.map_file = PLANNER_SAMPLE_DIR "/sample-gcc-O2";
    assert_int_equal(sj_plan_make(&options, &plan, &error), SJ_ECORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(the_error_of_a_selection_names_its_cause),
        cmocka_unit_test(patch_windows_are_disjoint_and_free_of_branch_targets),
        cmocka_unit_test(every_jump_table_entry_of_the_linker_is_a_target),
        cmocka_unit_test(optimized_samples_hook_the_hard_functions),
        cmocka_unit_test(rare_shapes_of_code_are_hooked),
        cmocka_unit_test(flags_are_kept_where_they_are_read_only),
        cmocka_unit_test(jumps_to_functions_are_tail_calls),
        cmocka_unit_test(a_large_text_without_rules_is_not_read_for_the_flags),
        cmocka_unit_test(flags_are_kept_behind_the_tables_of_a_library),
        cmocka_unit_test(a_one_byte_jump_is_followed_by_its_distance),
        cmocka_unit_test(functions_with_false_tables_are_skipped_with_a_reason),
        cmocka_unit_test(imports_are_planned_when_asked_for),
        cmocka_unit_test(a_plan_of_imports_alone_equals_that_part_of_the_whole_plan),
        cmocka_unit_test(map_files_name_the_functions_of_stripped_programs),
        cmocka_unit_test(symbols_that_were_split_off_are_found),
        cmocka_unit_test(flipped_bytes_of_a_plan_are_noticed),
        cmocka_unit_test(a_damaged_cached_plan_is_replaced),
        cmocka_unit_test(unwanted_functions_are_listed_as_filtered),
        cmocka_unit_test(another_selection_makes_the_plan_that_it_would_have_made),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

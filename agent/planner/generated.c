#include "agent/planner/generated.h"

#include "agent/abi/plan_crc.h"
#include "agent/planner/builder.h"
#include "agent/planner/machine.h"
#include "agent/planner/plan_file.h"

#include <elf.h>
#include <stdlib.h>

/* True if the functions are as sj_plan_make_generated requires. */
static bool are_valid(const sj_generated_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const sj_generated_function *function = &functions[i];
        const uint64_t end = function->address + function->size;
        if (function->size == 0 || end < function->address || function->function == 0 ||
            end - functions[0].address > SJ_GENERATED_SPAN_BYTES ||
            (i + 1 < count && end > functions[i + 1].address)) {
            return false;
        }
    }
    return count != 0;
}

static uint64_t end_address(const sj_generated_function *function)
{
    return function->address + function->size;
}

static sj_status copy_text(sj_module *module, const sj_generated_function *functions, size_t count)
{
    module->text_low = functions[0].address;
    module->text_bytes = (uint32_t)(end_address(&functions[count - 1]) - module->text_low);
    uint8_t *text = calloc(1, module->text_bytes);
    module->own_text = text;
    module->text = text;
    if (text == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(text + (functions[i].address - module->text_low), functions[i].bytes,
               functions[i].size);
    }
    return SJ_OK;
}

/* Adds a symbol for each function, without the constants after its code. */
static sj_status add_symbols(sj_module *module, const sj_generated_function *functions,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const sj_fde *frame = sj_eh_frame_find(&module->unwind, functions[i].address);
        const sj_symbol symbol = {.address = functions[i].address,
                                  .size =
                                      frame != NULL ? frame->end - frame->start : functions[i].size,
                                  .name = "",
                                  .source = SJ_SYMBOL_GENERATED,
                                  .kind = SJ_SYMBOL_FUNCTION};
        SJ_TRY(sj_symbols_add(&module->symbols, symbol));
    }
    return SJ_OK;
}

static sj_status load_module(uint16_t elf_machine, const sj_generated_function *functions,
                             size_t count, sj_module *module)
{
    module->machine = sj_machine_of(elf_machine);
    if (module->machine == NULL || module->machine->frame_step == NULL) {
        return SJ_EUNSUPPORTED;
    }
    if (!are_valid(functions, count)) {
        return SJ_ECORRUPT;
    }
    module->elf.machine = elf_machine;
    module->elf.type = ET_DYN;
    module->is_generated = true;
    SJ_TRY(copy_text(module, functions, count));
    SJ_TRY(sj_generated_find_frames(module, functions, count));
    SJ_TRY(add_symbols(module, functions, count));
    SJ_TRY(sj_module_find_ranges(module));
    return sj_module_find_targets(module);
}

/* Writes the functions' ids into the plan. The plan has the same functions in the same order. */
static void write_ids(sj_plan *plan, const sj_generated_function *functions)
{
    sj_plan_header *header = (sj_plan_header *)(uintptr_t)plan->header;
    sj_plan_function *planned = (sj_plan_function *)(uintptr_t)sj_plan_functions(header);
    for (uint32_t i = 0; i < header->function_count; i++) {
        planned[i].name = functions[i].function;
    }
    header->crc32c = sj_plan_crc(header, plan->size_bytes);
}

static sj_status plan_module(sj_module *module, const sj_generated_function *functions,
                             sj_plan *plan)
{
    sj_builder builder = {.module = module};
    sj_status status = sj_builder_start(&builder);
    if (status == SJ_OK) {
        status = sj_builder_hook(&builder);
    }
    if (status == SJ_OK) {
        status = sj_builder_sum(&builder);
    }
    if (status == SJ_OK) {
        status = sj_plan_serialize(&builder, "", (sj_slice){0}, plan);
    }
    if (status == SJ_OK) {
        write_ids(plan, functions);
    }
    sj_builder_free(&builder);
    return status;
}

sj_status sj_plan_make_generated(uint16_t elf_machine, const sj_generated_function *functions,
                                 size_t count, sj_plan *plan)
{
    sj_module module = {0};
    *plan = (sj_plan){0};
    sj_status status = load_module(elf_machine, functions, count, &module);
    if (status == SJ_OK && module.range_count != count) {
        status = SJ_ECORRUPT;
    }
    if (status == SJ_OK) {
        status = plan_module(&module, functions, plan);
    }
    sj_module_close(&module);
    return status;
}

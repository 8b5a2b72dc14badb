#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/mono/internal.h"

sj_mono_api sj_mono_runtime;

typedef struct wanted_symbol {
    const char *name;
    void *slot; /* A function pointer in sj_mono_runtime. */
} wanted_symbol;

static const wanted_symbol symbols[] = {
    {"mono_profiler_create", &sj_mono_runtime.profiler_create},
    {"mono_profiler_set_call_instrumentation_filter_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_FILTER]},
    {"mono_profiler_set_method_enter_callback", &sj_mono_runtime.set_callback[SJ_MONO_ENTER]},
    {"mono_profiler_set_method_leave_callback", &sj_mono_runtime.set_callback[SJ_MONO_LEAVE]},
    {"mono_profiler_set_method_tail_call_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_TAIL_CALL]},
    {"mono_profiler_set_method_exception_leave_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_EXCEPTION_LEAVE]},
    {"mono_profiler_set_exception_throw_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_EXCEPTION_THROW]},
    {"mono_profiler_set_method_free_callback", &sj_mono_runtime.set_callback[SJ_MONO_METHOD_FREE]},
    {"mono_profiler_set_image_unloading_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_IMAGE_UNLOADING]},
    {"mono_profiler_set_runtime_initialized_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_INITIALIZED]},
    {"mono_profiler_set_jit_code_buffer_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_CODE_BUFFER]},
    {"mono_profiler_set_assembly_loaded_callback",
     &sj_mono_runtime.set_callback[SJ_MONO_ASSEMBLY_LOADED]},
    {"mono_method_get_class", &sj_mono_runtime.method_class},
    {"mono_method_get_token", &sj_mono_runtime.method_token},
    {"mono_method_full_name", &sj_mono_runtime.method_full_name},
    {"mono_free", &sj_mono_runtime.free},
    {"mono_class_get_image", &sj_mono_runtime.class_image},
    {"mono_image_get_filename", &sj_mono_runtime.image_filename},
    {"mono_image_get_name", &sj_mono_runtime.image_name},
    {"mono_image_get_guid", &sj_mono_runtime.image_guid},
    {"mono_image_is_dynamic", &sj_mono_runtime.image_is_dynamic},
    {"mono_image_get_entry_point", &sj_mono_runtime.image_entry_point},
    {"mono_image_get_assembly", &sj_mono_runtime.image_assembly},
    {"mono_assembly_get_image", &sj_mono_runtime.assembly_image},
    {"mono_method_signature", &sj_mono_runtime.method_signature},
    {"mono_signature_is_instance", &sj_mono_runtime.signature_is_instance},
    {"mono_signature_get_params", &sj_mono_runtime.signature_params},
    {"mono_signature_get_return_type", &sj_mono_runtime.signature_return},
    {"mono_type_get_type", &sj_mono_runtime.type_get_type},
    {"mono_type_get_underlying_type", &sj_mono_runtime.type_underlying},
    {"mono_type_is_byref", &sj_mono_runtime.type_is_byref},
    {"mono_string_chars", &sj_mono_runtime.string_chars},
    {"mono_string_length", &sj_mono_runtime.string_length},
    {"mono_assembly_get_main", &sj_mono_runtime.main_assembly},
    {"mono_class_from_mono_type", &sj_mono_runtime.class_of_type},
    {"mono_object_get_class", &sj_mono_runtime.class_of_object},
    {"mono_class_get_name", &sj_mono_runtime.class_name},
    {"mono_class_get_namespace", &sj_mono_runtime.class_namespace},
    {"mono_class_is_enum", &sj_mono_runtime.class_is_enum},
    {"mono_class_get_rank", &sj_mono_runtime.class_rank},
    {"mono_get_string_class", &sj_mono_runtime.string_class},
    {"mono_class_is_valuetype", &sj_mono_runtime.class_is_structure},
    {"mono_class_get_fields", &sj_mono_runtime.class_fields},
    {"mono_field_get_flags", &sj_mono_runtime.field_flags},
    {"mono_field_get_offset", &sj_mono_runtime.field_offset},
    {"mono_field_get_type", &sj_mono_runtime.field_type},
    {"mono_field_get_data", &sj_mono_runtime.field_data},
    {"mono_field_get_name", &sj_mono_runtime.field_name},
    {"mono_array_length", &sj_mono_runtime.array_length},
    {"mono_class_get_type", &sj_mono_runtime.type_of_class},
    {"mono_class_get_element_class", &sj_mono_runtime.element_class},
    {"mono_array_element_size", &sj_mono_runtime.element_bytes},
    {"mono_array_addr_with_size", &sj_mono_runtime.element_place},
    {"mono_object_hash", &sj_mono_runtime.object_hash},
    {"mono_runtime_is_shutting_down", &sj_mono_runtime.is_shutting_down},
    {"mono_get_root_domain", &sj_mono_runtime.root_domain},
    {"mono_domain_get", &sj_mono_runtime.current_domain},
    {"mono_jit_info_table_find", &sj_mono_runtime.find_code},
    {"mono_jit_info_get_code_start", &sj_mono_runtime.code_start},
    {"mono_jit_info_get_code_size", &sj_mono_runtime.code_size},
    {"mono_jit_info_get_method", &sj_mono_runtime.code_method},
    {"mono_profiler_enable_coverage", &sj_mono_runtime.enable_coverage},
    {"mono_profiler_get_coverage_data", &sj_mono_runtime.coverage_data},
    {"mono_profiler_set_coverage_filter_callback", &sj_mono_runtime.set_coverage_filter},
    {"mono_profiler_set_runtime_shutdown_begin_callback", &sj_mono_runtime.set_shutdown_begin},
};

const char *sj_mono_find_api(void)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const uint64_t address = sj_rebind_find(symbols[i].name);
        if (address == 0) {
            return symbols[i].name;
        }
        *(uint64_t *)symbols[i].slot = address;
    }
    return NULL;
}

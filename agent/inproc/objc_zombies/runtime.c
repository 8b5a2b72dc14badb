#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/hooks/rebind.h"

sj_gcc_runtime sj_objc_gcc;

typedef struct wanted_function {
    const char *name;
    void *place;
} wanted_function;

/* Only GCC's runtime has objc_msg_lookup and the function that registers a module's selectors. */
bool sj_objc_find_runtime(void)
{
    static bool is_found;
    sj_gcc_runtime *gcc = &sj_objc_gcc;
    const wanted_function wanted[] = {{"objc_msg_lookup", &gcc->look_up},
                                      {"objc_lookUpClass", &gcc->look_up_class},
                                      {"class_getName", &gcc->class_name},
                                      {"sel_getName", &gcc->selector_name},
                                      {"sel_getTypeEncoding", &gcc->selector_types},
                                      {"sel_registerName", &gcc->register_selector},
                                      {"class_getInstanceMethod", &gcc->instance_method},
                                      {"method_getImplementation", &gcc->implementation},
                                      {"method_setImplementation", &gcc->set_implementation},
                                      {"class_getMethodImplementation", &gcc->class_implementation},
                                      {"objc_sizeof_type", &gcc->size_of_type},
                                      {"objc_skip_type_qualifiers", &gcc->skip_qualifiers},
                                      {"class_respondsToSelector", &gcc->responds},
                                      {"objc_getClassList", &gcc->list_classes}};
    if (is_found) {
        return true;
    }
    if (sj_rebind_find("__objc_register_selectors_from_module") == 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const uint64_t address = sj_rebind_find(wanted[i].name);
        if (address == 0) {
            return false;
        }
        *(uint64_t *)wanted[i].place = address;
    }
    is_found = true;
    return true;
}

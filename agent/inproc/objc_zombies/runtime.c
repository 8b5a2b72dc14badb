/* Design notes
 *
 * Before the first message to one of its instances, a class has no own dispatch table. It uses a
 * table that the runtime shares among all such classes. method_setImplementation writes to the
 * dispatch table of the method's class, even if this is the shared table. Then every class without
 * its own table would run that method. sj_objc_set_code avoids this. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/hooks/rebind.h"

sj_gcc_runtime sj_objc_gcc;

typedef struct wanted_function {
    const char *name;
    void *function_pointer;
} wanted_function;

/* Only GCC's runtime has __objc_register_selectors_from_module. */
bool sj_objc_zombies_find_runtime(void)
{
    static bool is_found;
    sj_gcc_runtime *gcc = &sj_objc_gcc;
    const wanted_function wanted[] = {
        {"objc_msg_lookup", &gcc->look_up},
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
        {"objc_getClassList", &gcc->list_classes},
        {"__objc_update_dispatch_table_for_class", &gcc->update_dispatch},
        {"objc_mutex_lock", &gcc->lock},
        {"objc_mutex_unlock", &gcc->unlock}};
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
        *(uint64_t *)wanted[i].function_pointer = address;
    }
    gcc->mutex = dlsym(RTLD_DEFAULT, "__objc_runtime_mutex");
    gcc->shared_dispatch = dlsym(RTLD_DEFAULT, "__objc_uninstalled_dtable");
    is_found = gcc->mutex != NULL && gcc->shared_dispatch != NULL;
    return is_found;
}

/* If the class has no own dispatch table, changes only the method: the runtime builds the table
 * from it later. While the runtime's mutex is held, no class gets its own table. */
void sj_objc_set_code(const sj_gcc_class *class, sj_gcc_method *method, uint64_t code)
{
    void *mutex = *sj_objc_gcc.mutex;
    (void)sj_objc_gcc.lock(mutex);
    const bool is_shared = class->dispatch == *sj_objc_gcc.shared_dispatch;
    if (class->dispatch != NULL && !is_shared) {
        (void)sj_objc_gcc.set_implementation(method, code);
    } else {
        __atomic_store_n(&method->code, code, __ATOMIC_RELEASE);
    }
    if (is_shared) {
        sj_objc_gcc.update_dispatch(class);
    }
    (void)sj_objc_gcc.unlock(mutex);
}

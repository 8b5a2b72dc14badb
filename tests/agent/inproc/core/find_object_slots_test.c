/* Tests the entries that an attached process keeps for modules that the loader has mapped but not
 * relocated. The module is made by hand at the bias of the C library, as if the C library was
 * unloaded and the module loaded there. */
#include "agent/abi/agent_state.h"
#include "agent/inproc/core/arch.h"
#include "agent/inproc/core/find_object.h"
#include "agent/inproc/hooks/initialisation.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, STEP = 1 << 20, WORD = 0x100, ENTRIES = 3 };

sj_agent_state sojourn_agent_state;
void *sj_find_object_real; /* as if the loader had no _dl_find_object */

void sj_arch_init_entry(void)
{
}

typedef struct mapped_module {
    ElfW(Dyn) dynamic[7];
    ElfW(Sym) symbols[2];
    ElfW(Rela) relocation;
    ElfW(Phdr) segment;
    uint64_t slot;
    uint64_t array[ENTRIES];
    char strings[32];
} mapped_module;

static struct dl_phdr_info library;
static mapped_module *module; /* in its own page above the library */
static struct dl_phdr_info info;

static int keep_library(struct dl_phdr_info *found, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (strstr(found->dlpi_name, "libc.so") != NULL) {
        library = *found;
    }
    return library.dlpi_addr != 0;
}

/* Maps a page at an address above the library, because the addresses of a module lie above its
 * bias. */
static void *map_above(uint64_t address)
{
    void *page = MAP_FAILED;
    while (page == MAP_FAILED) {
        address += STEP;
        page =
            mmap((void *)(uintptr_t)(address & ~(uint64_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    return page;
}

static uint64_t address_of(const void *place)
{
    return (uint64_t)(uintptr_t)place;
}

/* Fills in the module as it is before its relocation, with one kind of initialiser. */
static void make_module(bool has_array)
{
    const uint64_t bias = library.dlpi_addr;
    memset(module, 0, sizeof(*module));
    strcpy(module->strings + 1, "dl_iterate_phdr");
    module->symbols[1].st_name = 1;
    module->relocation = (ElfW(Rela)){.r_offset = address_of(&module->slot) - bias,
                                      .r_info = ELF64_R_INFO(1, SJ_MACHINE_GLOBAL_DATA)};
    const ElfW(Dyn) entries[] = {
        {DT_SYMTAB, {address_of(module->symbols)}},
        {DT_STRTAB, {address_of(module->strings)}},
        {DT_RELA, {address_of(&module->relocation)}},
        {DT_RELASZ, {sizeof(module->relocation)}},
        {has_array ? DT_INIT_ARRAY : DT_INIT,
         {has_array ? address_of(module->array) - bias : (uint64_t)WORD}},
        {has_array ? DT_INIT_ARRAYSZ : DT_NULL, {sizeof(module->array)}},
    };
    memcpy(module->dynamic, entries, sizeof(entries));
    module->segment = (ElfW(Phdr)){.p_type = PT_DYNAMIC,
                                   .p_flags = PF_R | PF_W,
                                   .p_vaddr = address_of(module->dynamic) - bias,
                                   .p_memsz = sizeof(module->dynamic)};
    info = (struct dl_phdr_info){
        .dlpi_addr = bias, .dlpi_name = "", .dlpi_phdr = &module->segment, .dlpi_phnum = 1};
}

static int set_up(void **state)
{
    (void)state;
    (void)dl_iterate_phdr(keep_library, NULL);
    assert_int_not_equal(library.dlpi_addr, 0);
    module = map_above(library.dlpi_addr);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(module, PAGE);
}

static uint64_t *changed_word(void)
{
    return &module->dynamic[4].d_un.d_ptr;
}

/* Defers the binding of the module. Returns the page that its changed word points to. */
static void *defer_module(bool has_array)
{
    make_module(has_array);
    const uint64_t before = *changed_word();
    sj_find_object_bind_later(&info);
    assert_int_not_equal(*changed_word(), before);
    return (void *)(uintptr_t)(library.dlpi_addr + *changed_word());
}

static bool is_mapped(void *page)
{
    return msync(page, PAGE, MS_ASYNC) == 0;
}

static void a_module_that_was_not_relocated_changes_no_other(void **state)
{
    (void)state;
    for (int has_array = 0; has_array <= 1; has_array++) {
        for (int is_leaving = 0; is_leaving <= 1; is_leaving++) {
            void *region = defer_module(has_array != 0);
            const mapped_module left = *module;
            assert_true(is_mapped(region));
            if (is_leaving == 0) {
                sj_find_object_on_initialisation();
            } else {
                sj_find_object_release();
            }
            assert_memory_equal(module, &left, sizeof(left));
            assert_false(is_mapped(region));
        }
    }
}

static void the_next_bound_module_frees_the_stub_of_an_unloaded_one(void **state)
{
    (void)state;
    void *region = defer_module(false);
    sj_find_object_bind_later(&library); /* the C library has no slots to change */
    assert_false(is_mapped(region));
}

static void a_module_that_is_unloaded_leaves_nothing(void **state)
{
    (void)state;
    void *region = defer_module(false);
    sj_find_object_forget(0);
    sj_find_object_forget(library.dlpi_addr + PAGE);
    assert_true(is_mapped(region));
    sj_find_object_forget(library.dlpi_addr);
    assert_false(is_mapped(region));
}

/* Another module may have its dynamic section at the same address. */
static void a_section_is_restored_only_if_it_leads_to_the_stub(void **state)
{
    (void)state;
    for (int has_array = 0; has_array <= 1; has_array++) {
        sj_dynamic_view view;
        sj_initialisation init = {0};
        make_module(has_array != 0);
        const uint64_t before = *changed_word();
        assert_true(sj_dynamic_view_read(&info, &view));
        assert_true(sj_initialisation_begin(&init, &view)); /* nothing is deferred */
        assert_true(sj_initialisation_defer(&init, &view, sj_arch_init_entry));
        assert_true(sj_initialisation_begin(&init, &view));
        assert_int_equal(*changed_word(), before);
        sj_initialisation_deinit(&init);
        assert_true(sj_initialisation_defer(&init, &view, sj_arch_init_entry));
        *changed_word() = before + 2 * sizeof(uint64_t);
        assert_false(sj_initialisation_begin(&init, &view));
        assert_int_equal(*changed_word(), before + 2 * sizeof(uint64_t));
        sj_initialisation_deinit(&init);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_that_was_not_relocated_changes_no_other),
        cmocka_unit_test(the_next_bound_module_frees_the_stub_of_an_unloaded_one),
        cmocka_unit_test(a_module_that_is_unloaded_leaves_nothing),
        cmocka_unit_test(a_section_is_restored_only_if_it_leads_to_the_stub),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Tests which functions only wrap the allocator, by their names. */
#include "collector-server/store/allocation_wrappers.h"
#include "tests/support/check.h"

static void wrappers_are_known_in_c_cxx_and_rust(void **state)
{
    static const char *const names[] = {
        "malloc",
        "xmalloc",
        "x_malloc",
        "XMALLOC",
        "xfree",
        "xstrdup",
        "g_malloc",
        "g_malloc0",
        "g_free",
        "safe_calloc",
        "PyMem_Malloc",
        "PyMem_RawFree",
        "CRYPTO_free",
        "Perl_safesysfree",
        "my_alloc",
        "operator new(unsigned long)",
        "operator new[](unsigned long)",
        "operator delete(void*)",
        "std::allocator<char>::allocate(unsigned long)",
        "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int const&)",
        "std::shared_ptr<app::node>::~shared_ptr()",
        "__gnu_cxx::new_allocator<char>::deallocate(char*)",
        "__rust_dealloc",
        "alloc::raw_vec::finish_grow",
        "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!sj_is_allocation_wrapper(names[i])) {
            fail_msg("%s", names[i]);
        }
    }
}

static void functions_with_a_meaning_of_their_own_are_not_wrappers(void **state)
{
    static const char *const names[] = {"",
                                        "main",
                                        "image_free",
                                        "node_alloc",
                                        "list_dealloc",
                                        "parse_header",
                                        "ref_put",
                                        "free_list",
                                        "app::node::free()",
                                        "app::allocate(std::string const&)",
                                        "void app::run<std::string>(int)",
                                        "-[Shape dealloc]",
                                        "Namespace.Type:free(int)",
                                        "stdio_free",
                                        "freeze",
                                        "new_session"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sj_is_allocation_wrapper(names[i])) {
            fail_msg("%s", names[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrappers_are_known_in_c_cxx_and_rust),
        cmocka_unit_test(functions_with_a_meaning_of_their_own_are_not_wrappers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

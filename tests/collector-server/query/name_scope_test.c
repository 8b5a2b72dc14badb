/* Tests class and namespace of functions' names, in every language. */
#include "collector-server/query/name_scope.h"

#include "tests/support/check.h"

#include <string.h>

static void names_are_split(void **state)
{
    static const struct {
        const char *name, *class, *namespace;
    } cases[] = {
        {"main", "", ""},
        {"f(int)", "", ""},
        {"ns::f(std::string const&)", "ns", ""},
        {"a::b::C::f(int)", "a::b::C", "a::b"},
        {"int a::f<int>(int)", "a", ""},
        {"std::vector<a::b, c::d>::push_back(a::b&&)", "std::vector<a::b, c::d>", "std"},
        {"(anonymous namespace)::C::f()", "(anonymous namespace)::C", "(anonymous namespace)"},
        {"C::operator()(int) const", "C", ""},
        {"C::operator<(C const&)", "C", ""},
        {"foo.constprop.0", "", ""},
        {"Game.Npc:Hit(int,string)", "Game.Npc", "Game"},
        {"A.B.Outer/Inner:Do()", "A.B.Outer/Inner", "A.B"},
        {"Main:Do(Game.Npc)", "Main", ""},
        {"com.acme.Outer$Inner.<init>(java.lang.String)", "com.acme.Outer$Inner", "com.acme"},
        {"Shapes.main(java.lang.String[])", "Shapes", ""},
        {"-[Account(Rates) add:to:]", "Account", ""},
        {"", "", ""},
        {"operator", "", ""},
        {"a::", "a", ""},
        {"f(", "", ""},
        {">>::x", ">>", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *start = NULL;
        const size_t bytes = sj_name_class_bytes(cases[i].name, &start);
        const size_t space = sj_name_namespace_bytes(start, bytes);
        if (bytes != strlen(cases[i].class) || strncmp(start, cases[i].class, bytes) != 0 ||
            space != strlen(cases[i].namespace)) {
            fail_msg("%s: class '%.*s', namespace '%.*s'", cases[i].name, (int)bytes, start,
                     (int)space, start);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_split)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

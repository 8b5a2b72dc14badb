/* A program whose runtime exports other functions than Mono 5.6 and later, without implementing
 * them. Build it with -rdynamic and -DJIT_END, -DWITH_OPT, -DBY_NAME, -DSLOT, or -DNEW. -DNEW has
 * only one function of the new interface. No tracer may call any of these functions. */
#include <stdio.h>
#include <stdlib.h>

#define RUNTIME(name)                                                                              \
    void name(void);                                                                               \
    void name(void)                                                                                \
    {                                                                                              \
        puts("called " #name);                                                                     \
        exit(1);                                                                                   \
    }

RUNTIME(mono_get_root_domain)
#ifdef NEW
RUNTIME(mono_profiler_set_jit_code_buffer_callback)
#endif
#ifdef JIT_END
RUNTIME(mono_profiler_install_jit_end)
RUNTIME(mono_compile_method)
#endif
#ifdef WITH_OPT
RUNTIME(mono_jit_compile_method_with_opt)
RUNTIME(mono_compile_method)
#endif
#ifdef BY_NAME
RUNTIME(mono_jit_compile_method)
#endif
#ifdef SLOT
RUNTIME(mono_compile_method)
#endif

__attribute__((noinline)) int older_work(int n)
{
    return n < 2 ? n : older_work(n - 1) + older_work(n - 2);
}

int main(void)
{
    printf("%d\n", older_work(10));
    return 4;
}

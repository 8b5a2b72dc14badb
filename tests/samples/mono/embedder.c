/* A program that embeds the runtime. embedder PROGRAM.exe [WORDS...] runs the program, after native
 * code has called one of its methods and was called back. With LATE it opens the runtime only when
 * it is needed, as many embedders do. */
#include <dlfcn.h>
#include <stddef.h>

typedef struct MonoDomain MonoDomain;
typedef struct MonoAssembly MonoAssembly;
typedef struct MonoImage MonoImage;
typedef struct MonoMethod MonoMethod;
typedef struct MonoMethodDesc MonoMethodDesc;

void mono_config_parse(const char *file);
MonoDomain *mono_jit_init(const char *name);
void mono_jit_cleanup(MonoDomain *domain);
MonoAssembly *mono_domain_assembly_open(MonoDomain *domain, const char *path);
MonoImage *mono_assembly_get_image(MonoAssembly *assembly);
int mono_jit_exec(MonoDomain *domain, MonoAssembly *assembly, int count, char **words);
void mono_add_internal_call(const char *name, const void *function);
MonoMethodDesc *mono_method_desc_new(const char *name, int with_namespace);
MonoMethod *mono_method_desc_search_in_image(MonoMethodDesc *name, MonoImage *image);
void *mono_runtime_invoke(MonoMethod *method, void *object, void **arguments, void **exception);

#ifdef LATE
static void *runtime;
#define RUNTIME(name) ((__typeof__(&name))dlsym(runtime, #name))
#else
#define RUNTIME(name) (&name)
#endif

static MonoMethod *called_back;

__attribute__((noinline)) int embedder_answer(int left)
{
    void *arguments[] = {&left};
    if (left > 0) {
        RUNTIME(mono_runtime_invoke)(called_back, NULL, arguments, NULL);
    }
    return left;
}

__attribute__((noinline)) static void embedder_call(MonoImage *image)
{
    int left = 3;
    void *arguments[] = {&left};
    MonoMethodDesc *name = RUNTIME(mono_method_desc_new)("Guest:Back", 0);
    called_back = RUNTIME(mono_method_desc_search_in_image)(name, image);
    if (called_back != NULL) {
        RUNTIME(mono_runtime_invoke)(called_back, NULL, arguments, NULL);
    }
}

int main(int count, char **words)
{
    if (count < 2) {
        return 2;
    }
#ifdef LATE
    runtime = dlopen("libmonosgen-2.0.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (runtime == NULL) {
        return 3;
    }
#endif
    RUNTIME(mono_config_parse)(NULL);
    MonoDomain *domain = RUNTIME(mono_jit_init)("embedder");
    RUNTIME(mono_add_internal_call)("Guest::Answer", (const void *)embedder_answer);
    MonoAssembly *assembly = RUNTIME(mono_domain_assembly_open)(domain, words[1]);
    if (assembly == NULL) {
        return 2;
    }
    embedder_call(RUNTIME(mono_assembly_get_image)(assembly));
    const int code = RUNTIME(mono_jit_exec)(domain, assembly, count - 1, words + 1);
    RUNTIME(mono_jit_cleanup)(domain);
    return code;
}

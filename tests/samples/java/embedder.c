/* A program that embeds a JVM. embedder CLASS_PATH CLASS ARGUMENT... calls the main method of the
 * class. With -DBY_NAME it opens libjvm at run time; otherwise it is linked with libjvm. */
#include <dlfcn.h>
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>

typedef jint (*create_vm)(JavaVM **vm, void **env, void *arguments);

static create_vm find_create(void)
{
#ifdef BY_NAME
    void *library = dlopen("libjvm.so", RTLD_NOW);
    return library != NULL ? (create_vm)dlsym(library, "JNI_CreateJavaVM") : NULL;
#else
    return JNI_CreateJavaVM;
#endif
}

static jobjectArray make_arguments(JNIEnv *env, char **texts, int count)
{
    jclass string = (*env)->FindClass(env, "java/lang/String");
    jobjectArray made = (*env)->NewObjectArray(env, count, string, NULL);
    for (int i = 0; i < count; i++) {
        (*env)->SetObjectArrayElement(env, made, i, (*env)->NewStringUTF(env, texts[i]));
    }
    return made;
}

int main(int argc, char **argv)
{
    char path[4096];
    JavaVM *vm = NULL;
    JNIEnv *env = NULL;
    JavaVMOption option = {.optionString = path};
    JavaVMInitArgs arguments = {.version = JNI_VERSION_1_8, .nOptions = 1, .options = &option};
    const create_vm create = find_create();
    if (argc < 3 || create == NULL) {
        return 2;
    }
    snprintf(path, sizeof(path), "-Djava.class.path=%s", argv[1]);
    if (create(&vm, (void **)&env, &arguments) != JNI_OK) {
        return 3;
    }
    jclass class = (*env)->FindClass(env, argv[2]);
    jmethodID method = class != NULL
                           ? (*env)->GetStaticMethodID(env, class, "main", "([Ljava/lang/String;)V")
                           : NULL;
    if (method == NULL) {
        return 4;
    }
    (*env)->CallStaticVoidMethod(env, class, method, make_arguments(env, argv + 3, argc - 3));
    const int thrown = (*env)->ExceptionCheck(env) ? 5 : 0;
    return (*vm)->DestroyJavaVM(vm) == JNI_OK ? thrown : 6;
}

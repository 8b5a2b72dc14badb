/* Design notes
 *
 * The JVM stops all threads for each batch of classes. Small batches cause many stops, large
 * batches cause long stops. If the JVM refuses one class, the whole batch fails. Then the classes
 * of the batch are transformed one by one. */
#include "agent/inproc/jvm/retransform.h"

#include "agent/inproc/jvm/class_facts.h"
#include "agent/inproc/jvm/class_marks.h"
#include "agent/inproc/jvm/tracer.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <time.h>

enum { BATCH_CLASSES = 64, QUESTION_CLASSES = 64 };

/* Classes that are transformed by one call of RetransformClasses. */
typedef struct class_batch {
    jvmtiEnv *jvmti;
    JNIEnv *env;
    sj_jvm_figures *figures;
    uint32_t count;
    jclass classes[BATCH_CLASSES];
} class_batch;

/* Returns the number of classes that were transformed: `count`, or 0 if the JVM refused. */
static uint32_t transform(const class_batch *batch, uint32_t first, uint32_t count)
{
    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    const jvmtiError status =
        (*batch->jvmti)->RetransformClasses(batch->jvmti, (jint)count, batch->classes + first);
    const uint64_t taken_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns;
    sj_jvm_figures *figures = batch->figures;
    if ((*batch->env)->ExceptionCheck(batch->env)) {
        (*batch->env)->ExceptionClear(batch->env);
    }
    figures->total_ns += taken_ns;
    figures->longest_ns = taken_ns > figures->longest_ns ? taken_ns : figures->longest_ns;
    figures->batches++;
    return status == JVMTI_ERROR_NONE ? count : 0;
}

static void transform_batch(class_batch *batch)
{
    uint32_t done = batch->count != 0 ? transform(batch, 0, batch->count) : 0;
    for (uint32_t i = 0; done == 0 && batch->count > 1 && i < batch->count; i++) {
        const uint32_t transformed = transform(batch, i, 1);
        batch->figures->retransformed += transformed;
        batch->figures->refused += 1 - transformed;
    }
    if (done != 0 || batch->count <= 1) {
        batch->figures->retransformed += done;
        batch->figures->refused += batch->count - done;
    }
    batch->count = 0;
}

static void add_to_batch(class_batch *batch, jclass class)
{
    batch->classes[batch->count++] = class;
    if (batch->count == BATCH_CLASSES) {
        transform_batch(batch);
    }
}

/* Loaded classes that are sent to the recorder in one question. */
typedef struct class_question {
    uint32_t count;
    jclass classes[QUESTION_CLASSES];
    sj_class_facts facts[QUESTION_CLASSES];
    sj_jvm_loaded loaded[QUESTION_CLASSES];
    uint8_t chosen[QUESTION_CLASSES];
} class_question;

/* Asks the recorder which classes need other probes, and adds these classes to the batch. */
static void ask_question(class_batch *batch, class_question *question)
{
    memset(question->chosen, 0, sizeof(question->chosen));
    if (question->count != 0 &&
        sj_jvm_choose_classes(question->loaded, question->count, question->chosen)) {
        batch->figures->examined += question->count;
        for (uint32_t i = 0; i < question->count; i++) {
            if (question->chosen[i] != 0) {
                add_to_batch(batch, question->classes[i]);
            }
        }
    }
    for (uint32_t i = 0; i < question->count; i++) {
        sj_class_facts_free(batch->jvmti, &question->facts[i]);
    }
    question->count = 0;
}

static void add_to_question(class_batch *batch, class_question *question, jclass class,
                            bool unasked_only)
{
    sj_class_facts *facts = &question->facts[question->count];
    sj_jvm_loaded *loaded = &question->loaded[question->count];
    if (!sj_class_facts_read(batch->jvmti, batch->env, class, facts, loaded) ||
        (unasked_only && loaded->selection != SJ_CLASS_UNASKED)) {
        sj_class_facts_free(batch->jvmti, facts);
        return;
    }
    question->classes[question->count] = class;
    if (++question->count == QUESTION_CLASSES) {
        ask_question(batch, question);
    }
}

static void free_classes(jvmtiEnv *jvmti, JNIEnv *env, jclass *classes, jint count)
{
    for (jint i = 0; i < count; i++) {
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

void sj_retransform_chosen(jvmtiEnv *jvmti, JNIEnv *env, bool unasked_only, sj_jvm_figures *figures)
{
    unsigned char *memory = NULL;
    jint count = 0;
    jclass *classes = NULL;
    class_batch batch = {.jvmti = jvmti, .env = env, .figures = figures};
    if ((*jvmti)->Allocate(jvmti, sizeof(class_question), &memory) != JVMTI_ERROR_NONE) {
        return;
    }
    class_question *question = (void *)memory;
    question->count = 0;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) == JVMTI_ERROR_NONE) {
        for (jint i = 0; i < count; i++) {
            add_to_question(&batch, question, classes[i], unasked_only);
        }
        ask_question(&batch, question);
        transform_batch(&batch);
        free_classes(jvmti, env, classes, count);
    }
    (void)(*jvmti)->Deallocate(jvmti, memory);
}

void sj_retransform_marked(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures)
{
    jint count = 0;
    jclass *classes = NULL;
    sj_class_facts facts;
    class_batch batch = {.jvmti = jvmti, .env = env, .figures = figures};
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        sj_jvm_loaded loaded;
        if (sj_class_facts_read(jvmti, env, classes[i], &facts, &loaded) &&
            loaded.selection >= SJ_CLASS_SELECTED) {
            figures->examined++;
            add_to_batch(&batch, classes[i]);
        }
        sj_class_facts_free(jvmti, &facts);
    }
    transform_batch(&batch);
    free_classes(jvmti, env, classes, count);
}

void JNICALL sj_jvm_on_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
    uint8_t chosen = 0;
    sj_class_facts facts;
    sj_jvm_loaded loaded;
    (void)thread;
    if (sj_tracer_is_on()) {
        if (sj_jvm_begin_use()) {
            sj_tracer_add_class(jvmti, env, class);
            sj_jvm_end_use();
        }
        return;
    }
    if (atomic_load(&sj_jvm.enabled) == 0 || !sj_class_is_by_lineage() || !sj_recorder_is_armed() ||
        !sj_recorder_may_call()) {
        return;
    }
    if (sj_class_facts_read(jvmti, env, class, &facts, &loaded) &&
        sj_jvm_choose_classes(&loaded, 1, &chosen) && chosen != 0) {
        (void)(*jvmti)->RetransformClasses(jvmti, 1, &class);
    }
    sj_class_facts_free(jvmti, &facts);
}

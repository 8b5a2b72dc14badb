#include "agent/policy/policy.h"

#include <string.h>

const char *const sj_policy_presets[] = {"default", "everything",    "jank",      "coverage",
                                         "zombies", "zombies-field", "minitrace", NULL};

static const char *const documents[] = {
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"default\",\n"
    "  \"description\": \"The program's own modules as sums per call path, at most 3 % slower\",\n"
    "  \"mode\": \"profile\",\n"
    "  \"budget\": \"3%\"\n"
    "}\n",
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"everything\",\n"
    "  \"description\": \"Every call of every module, system libraries included\",\n"
    "  \"mode\": \"trace\",\n"
    "  \"modules\": {\"system\": true}\n"
    "}\n",
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"jank\",\n"
    "  \"description\": \"The seconds around slow frames (sojourn_frame_tick) and crashes\",\n"
    "  \"mode\": \"flight\",\n"
    "  \"budget\": \"10%\",\n"
    "  \"flight\": {\"before\": \"5s\", \"after\": \"1s\", \"memory\": \"64M\"},\n"
    "  \"triggers\": [\n"
    "    {\"on\": \"jank\", \"longer_than\": \"50ms\", \"times\": 1, \"do\": [\"dump\", "
    "\"mark\"]},\n"
    "    {\"on\": \"app\", \"do\": [\"dump\"]},\n"
    "    {\"on\": \"command\", \"do\": [\"dump\"]},\n"
    "    {\"on\": \"crash\", \"do\": [\"dump\"]}\n"
    "  ]\n"
    "}\n",
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"coverage\",\n"
    "  \"description\": \"Which functions were called at all: sums per call path, no budget\",\n"
    "  \"mode\": \"profile\"\n"
    "}\n",
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"zombies\",\n"
    "  \"description\": \"Uses of freed memory, all that is known: every heap block is guarded "
    "while there is room, others are freed later, objects are kept with their history\",\n"
    "  \"mode\": \"profile\",\n"
    "  \"zombies\": {\n"
    "    \"heap\": {\"one_in\": 1, \"stack_bytes\": 1024, \"delayed_free\": "
    "true, "
    "\"vtables\": true},\n"
    "    \"objc\": {\"history\": true}\n"
    "  }\n"
    "}\n",
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"zombies-field\",\n"
    "  \"description\": \"Uses of freed memory, in sampled heap blocks and objects: for programs "
    "in "
    "use\",\n"
    "  \"mode\": \"profile\",\n"
    "  \"budget\": \"1%\",\n"
    "  \"zombies\": {\n"
    "    \"heap\": {\"one_in\": 5000, \"blocks\": 512},\n"
    "    \"objc\": {\"stacks\": 512, \"queue\": {\"objects\": 2000, \"memory\": \"2M\"}}\n"
    "  }\n"
    "}\n",
    "{\n"
    "  \"policy\": 1,\n"
    "  \"name\": \"minitrace\",\n"
    "  \"description\": \"Every call of a Java program's own methods; packages below org. are the "
    "system's, too\",\n"
    "  \"mode\": \"trace\",\n"
    "  \"java\": {\n"
    "    \"system\": [\"java.*\", \"javax.*\", \"jdk.*\", \"sun.*\", \"com.sun.*\", \"android.*\", "
    "\"org.*\"]\n"
    "  }\n"
    "}\n",
};

const char *sj_policy_preset(const char *name)
{
    for (size_t i = 0; sj_policy_presets[i] != NULL; i++) {
        if (strcmp(sj_policy_presets[i], name) == 0) {
            return documents[i];
        }
    }
    return NULL;
}

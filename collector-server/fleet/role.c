#include "collector-server/fleet/role.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
    [SJ_ROLE_NONE] = "none",         [SJ_ROLE_READER] = "reader", [SJ_ROLE_ANALYST] = "analyst",
    [SJ_ROLE_OPERATOR] = "operator", [SJ_ROLE_ADMIN] = "admin",
};

const char *sj_role_name(sj_role role)
{
    return names[role];
}

bool sj_role_parse(const char *text, sj_role *role)
{
    for (int i = SJ_ROLE_READER; i <= SJ_ROLE_ADMIN; i++) {
        if (strcmp(text, names[i]) == 0) {
            *role = (sj_role)i;
            return true;
        }
    }
    return false;
}

#include "agent/inproc/hooks/dynamic_view.h"

#include "agent/abi/page.h"
#include "agent/inproc/recorder/sys.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

/* Returns the address for the value of a dynamic entry. glibc adds the bias to such values when it
 * loads a module; other loaders do not. */
static uint64_t dynamic_address(const sj_dynamic_view *view, uint64_t value)
{
    return value < view->bias ? view->bias + value : value;
}

static void read_dynamic(const ElfW(Dyn) * entry, sj_dynamic_view *view)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const uint64_t address = dynamic_address(view, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            view->symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            view->strings = (const char *)address;
            break;
        case DT_GNU_HASH:
            view->hash = (const uint32_t *)address;
            break;
        case DT_VERSYM:
            view->versions = (const uint16_t *)address;
            break;
        case DT_VERNEED:
            view->needed = (const ElfW(Verneed) *)address;
            break;
        case DT_VERDEF:
            view->defined = (const ElfW(Verdef) *)address;
            break;
        case DT_JMPREL:
            view->tables[0] = (const ElfW(Rela) *)address;
            break;
        case DT_PLTRELSZ:
            view->table_bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            view->tables[1] = (const ElfW(Rela) *)address;
            break;
        case DT_RELASZ:
            view->table_bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
}

bool sj_dynamic_view_read(const struct dl_phdr_info *info, sj_dynamic_view *view)
{
    const uint64_t here = (uint64_t)(uintptr_t)&sj_dynamic_view_read;
    *view = (sj_dynamic_view){.bias = info->dlpi_addr};
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uint64_t low = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && here >= low && here - low < segment->p_memsz) {
            return false;
        }
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 && view->text_high == 0) {
            view->text_low = low;
            view->text_high = low + segment->p_memsz;
        }
        if (segment->p_type == PT_DYNAMIC) {
            view->dynamic = (ElfW(Dyn) *)low;
            view->dynamic_is_writable = (segment->p_flags & PF_W) != 0;
        } else if (segment->p_type == PT_GNU_RELRO) {
            view->relro_low = low;
            /* The loader makes whole pages read-only. */
            view->relro_high = sj_page_start(low + segment->p_memsz);
        }
    }
    /* The vDSO has no file and no slots to rebind. */
    if (view->dynamic == NULL || strstr(info->dlpi_name, "vdso") != NULL) {
        return false;
    }
    read_dynamic(view->dynamic, view);
    return view->symbols != NULL && view->strings != NULL;
}

bool sj_slot_next(const sj_dynamic_view *view, sj_slot *slot)
{
    for (; slot->table < 2; slot->table++, slot->next = 0) {
        while (slot->next < view->table_bytes[slot->table] / sizeof(ElfW(Rela))) {
            const ElfW(Rela) *relocation = &view->tables[slot->table][slot->next++];
            slot->type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
            if (slot->type == SJ_MACHINE_JUMP_SLOT || slot->type == SJ_MACHINE_GLOBAL_DATA ||
                (slot->type == SJ_MACHINE_WORD && relocation->r_addend == 0)) {
                slot->symbol = (uint32_t)ELF64_R_SYM(relocation->r_info);
                slot->address = view->bias + relocation->r_offset;
                slot->name = view->strings + view->symbols[slot->symbol].st_name;
                return true;
            }
        }
    }
    return false;
}

bool sj_slot_write(const sj_dynamic_view *view, uint64_t slot, uint64_t value)
{
    void *page = (void *)sj_page_start(slot);
    const bool is_sealed = slot >= view->relro_low && slot < view->relro_high;
    if (is_sealed && sj_sys_protect(page, sj_page_bytes(), PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n((uint64_t *)slot, value, __ATOMIC_RELEASE);
    if (is_sealed) {
        (void)sj_sys_protect(page, sj_page_bytes(), PROT_READ);
    }
    return true;
}

uint32_t sj_symbol_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) {
        hash = hash * 33 + (uint8_t)*name;
    }
    return hash;
}

/* DT_GNU_HASH has buckets of symbol numbers, then the symbols' hashes. The last hash of each bucket
 * has its lowest bit set. */
bool sj_symbol_next(const sj_dynamic_view *view, const char *name, uint32_t hash, uint32_t *index)
{
    enum { BUCKETS = 0, FIRST = 1, FILTER_WORDS = 2, HEADER_WORDS = 4 };
    if (view->hash == NULL || view->hash[BUCKETS] == 0) {
        return false;
    }
    const uint32_t *buckets = view->hash + HEADER_WORDS + (size_t)2 * view->hash[FILTER_WORDS];
    const uint32_t *chain = buckets + view->hash[BUCKETS];
    const uint32_t first = view->hash[FIRST];
    uint32_t at = *index;
    bool is_last = at >= first && at != 0 && (chain[at - first] & 1) != 0;
    at = at != 0 ? at + 1 : buckets[hash % view->hash[BUCKETS]];
    for (; at >= first && !is_last; at++) {
        const ElfW(Sym) *symbol = &view->symbols[at];
        if ((chain[at - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            strcmp(view->strings + symbol->st_name, name) == 0) {
            *index = at;
            return true;
        }
        is_last = (chain[at - first] & 1) != 0;
    }
    return false;
}

const char *sj_symbol_version(const sj_dynamic_view *view, uint32_t symbol)
{
    enum { VERSION_MASK = 0x7fff, FIRST_NEEDED = 2 };
    if (view->versions == NULL || view->needed == NULL) {
        return NULL;
    }
    const uint16_t wanted = view->versions[symbol] & VERSION_MASK;
    const uint8_t *need_position = (const uint8_t *)view->needed;
    for (bool has_more = wanted >= FIRST_NEEDED; has_more;) {
        const ElfW(Verneed) *need = (const ElfW(Verneed) *)(const void *)need_position;
        const uint8_t *detail_position = need_position + need->vn_aux;
        for (uint32_t i = 0; i < need->vn_cnt; i++) {
            const ElfW(Vernaux) *detail = (const ElfW(Vernaux) *)(const void *)detail_position;
            if (detail->vna_other == wanted) {
                return view->strings + detail->vna_name;
            }
            detail_position += detail->vna_next;
        }
        has_more = need->vn_next != 0;
        need_position += need->vn_next;
    }
    return NULL;
}

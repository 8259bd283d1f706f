/* Operations of nvidia-smi, with the simulated host's own library. */
struct admin_error {
    const char *step;
    const char *why; /* NULL: it went well */
};

struct admin_error admin_create(const char *library, unsigned gpu, unsigned profile, unsigned start, unsigned size,
                                unsigned compute_profile, unsigned *gpu_instance);
struct admin_error admin_destroy(const char *library, unsigned gpu, unsigned gpu_instance);

"""Rows of the zoo that do not work yet, each with its reason. A row that works must be taken off this list."""

from __future__ import annotations

EXPECTED: dict[str, str] = {
    "funnel": "the model pins axis 1 of input_ids",
    "canine": "the model pins axis 1 of input_ids",
    "llama with a static cache": "the state has plain numbers inside, and torch compares them with the example's",
    "mamba with a state": "the state has plain numbers inside, and torch compares them with the example's",
    "bart with a cache": "the state has plain numbers inside, and torch compares them with the example's",
    "longt5": "the model pins seq//4 == 1",
    "swin": "the model pins width//4 >= height//4",
    "donut_swin": "the model pins width//4 >= height//4",
    "mobilenet_v2": "the model pins axis 2 of pixel_values",
    "mobilevit": "the model pins (height + 15)//16 == 4",
    "deformable_detr": "the model pins (height + 7)//8 == 8",
    "deformable_detr in two stages": "the model pins (height + 7)//8 == 8",
    "rt_detr": "the model pins axis 0 of pixel_values",
    "rt_detr_v2": "the model pins axis 0 of pixel_values",
    "d_fine": "the model pins axis 0 of pixel_values",
    "mask2former": "the model pins (height + 28)//32 == 3",
    "depth_anything": "the model pins height//8 == 8",
    "mobilevit for segmentation": "the model pins (height + 15)//16 == 6",
    "moonshine": "the model pins trunc((attention_mask_1 - 127)/64.0 + 1.0) == 61",
    "encodec": "the model pins axis 2 of input_values",
    "clipseg": "values of the graph differ from eager",
    "flava": "its config asks for a loss (return_loss)",
    "gemma3": "torch.vmap around a mask calls a higher-order operator that knows no mode key",
    "time_series_transformer": "its inputs have future_values, which an exporter takes for labels",
    "informer": "its inputs have future_values, which an exporter takes for labels",
    "autoformer": "its inputs have future_values, which an exporter takes for labels",
}

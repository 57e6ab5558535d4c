"""The classes of transformers.js 4.3 that transformers has too, and the files that each of them opens.

`node tests/clients/list_classes.mjs` prints them for the installed version, and a test holds this table against it."""

from __future__ import annotations

from typing import NamedTuple


class Sessions(NamedTuple):
    """The files that are opened together, and whether the class generates with them."""

    files: tuple[str, ...]
    generates: bool


ONE_GRAPH = Sessions(("model",), generates=False)
DECODER = Sessions(("model",), generates=True)
ENCODER_DECODER = Sessions(("encoder_model", "decoder_model_merged"), generates=True)
SEEING = Sessions(("embed_tokens", "decoder_model_merged", "vision_encoder"), generates=True)
HEARING = Sessions(("embed_tokens", "decoder_model_merged", "audio_encoder"), generates=True)
SEEING_AND_HEARING = Sessions(
    ("embed_tokens", "decoder_model_merged", "audio_encoder", "vision_encoder"), generates=True
)
# What an export writes.
WRITTEN = (ONE_GRAPH, DECODER, ENCODER_DECODER, SEEING, HEARING, SEEING_AND_HEARING)

KINDS_OF_POSITION = 3  # time, height and width of what is seen

_NAMES = {
    ONE_GRAPH: """
        ASTForAudioClassification ASTModel AfmoeModel AlbertForMaskedLM AlbertForQuestionAnswering
        AlbertForSequenceClassification AlbertModel ApertusModel ArceeModel BartForSequenceClassification
        BeitForImageClassification BeitModel BertForMaskedLM BertForQuestionAnswering
        BertForSequenceClassification BertForTokenClassification BertModel BloomModel CHMv2ForDepthEstimation
        CLIPModel CLIPSegForImageSegmentation CLIPSegModel CLIPTextModel CLIPTextModelWithProjection
        CLIPVisionModel CLIPVisionModelWithProjection CamembertForMaskedLM CamembertForQuestionAnswering
        CamembertForSequenceClassification CamembertForTokenClassification CamembertModel ChineseCLIPModel
        ClapAudioModelWithProjection ClapModel ClapTextModelWithProjection CodeGenModel Cohere2Model CohereModel
        ConvBertForMaskedLM ConvBertForQuestionAnswering ConvBertForSequenceClassification
        ConvBertForTokenClassification ConvBertModel ConvNextForImageClassification ConvNextModel
        ConvNextV2ForImageClassification ConvNextV2Model DFineForObjectDetection DFineModel DINOv3ConvNextModel
        DINOv3ViTModel DPTForDepthEstimation DPTModel DebertaForMaskedLM DebertaForQuestionAnswering
        DebertaForSequenceClassification DebertaForTokenClassification DebertaModel DebertaV2ForMaskedLM
        DebertaV2ForQuestionAnswering DebertaV2ForSequenceClassification DebertaV2ForTokenClassification
        DebertaV2Model DecisionTransformerModel DeepseekV3Model DeepseekV4Model DeiTForImageClassification
        DeiTModel DepthAnythingForDepthEstimation DepthProForDepthEstimation DetrForObjectDetection
        DetrForSegmentation DetrModel Dinov2ForImageClassification Dinov2Model
        Dinov2WithRegistersForImageClassification Dinov2WithRegistersModel DistilBertForMaskedLM
        DistilBertForQuestionAnswering DistilBertForSequenceClassification DistilBertForTokenClassification
        DistilBertModel DonutSwinModel EfficientNetForImageClassification EfficientNetModel ElectraForMaskedLM
        ElectraForQuestionAnswering ElectraForSequenceClassification ElectraForTokenClassification ElectraModel
        EmbeddingGemma2Model Ernie4_5Model EsmForMaskedLM EsmForSequenceClassification EsmForTokenClassification
        EsmModel EuroBertForMaskedLM EuroBertForSequenceClassification EuroBertForTokenClassification
        EuroBertModel FalconH1Model FalconModel GLPNForDepthEstimation GLPNModel GPT2Model GPTBigCodeModel
        GPTJModel GPTNeoModel GPTNeoXModel Gemma2Model Gemma3Model GemmaModel GlmModel GlmMoeDsaModel
        GptOssModel GraniteModel GraniteMoeHybridModel GroundingDinoForObjectDetection GroupViTModel HeliumModel
        HieraForImageClassification HieraModel HrmTextModel HubertForCTC HubertForSequenceClassification
        HubertModel HunYuanDenseV1Model IJepaForImageClassification IJepaModel Lfm2Model Lfm2MoeModel LlamaModel
        MBartForSequenceClassification MPNetForMaskedLM MPNetForQuestionAnswering MPNetForSequenceClassification
        MPNetForTokenClassification MPNetModel MaskFormerForInstanceSegmentation MaskFormerModel
        MgpstrForSceneTextRecognition MimiDecoderModel MimiEncoderModel Ministral3Model MinistralModel
        Mistral4Model MistralModel MobileBertForMaskedLM MobileBertForQuestionAnswering
        MobileBertForSequenceClassification MobileBertModel MobileNetV1ForImageClassification MobileNetV1Model
        MobileNetV2ForImageClassification MobileNetV2ForSemanticSegmentation MobileNetV2Model
        MobileViTForImageClassification MobileViTModel MobileViTV2ForImageClassification MobileViTV2Model
        ModernBertDecoderModel ModernBertForMaskedLM ModernBertForSequenceClassification
        ModernBertForTokenClassification ModernBertModel MoonshineModel MptModel MusicgenForCausalLM
        MusicgenModel NanoChatModel NemotronHModel NomicBertModel OPTModel Olmo2Model Olmo3Model OlmoHybridModel
        OlmoModel OpenAIPrivacyFilterForTokenClassification OpenAIPrivacyFilterModel OwlViTForObjectDetection
        OwlViTModel Owlv2ForObjectDetection Owlv2Model ParakeetForCTC PatchTSMixerForPrediction
        PatchTSMixerModel PatchTSTForPrediction PatchTSTModel Phi3Model PhiModel PvtForImageClassification
        PvtModel Qwen2Model Qwen2MoeModel Qwen3Model Qwen3MoeModel Qwen3NextModel RTDetrForObjectDetection
        RTDetrModel RTDetrV2ForObjectDetection RTDetrV2Model ResNetForImageClassification ResNetModel
        RoFormerForMaskedLM RoFormerForQuestionAnswering RoFormerForSequenceClassification
        RoFormerForTokenClassification RoFormerModel RobertaForMaskedLM RobertaForQuestionAnswering
        RobertaForSequenceClassification RobertaForTokenClassification RobertaModel
        SegformerForImageClassification SegformerForSemanticSegmentation SegformerModel SiglipModel
        SiglipTextModel SiglipVisionModel SmolLM3Model SolarOpenModel SpeechT5HifiGan SpeechT5Model
        SqueezeBertForMaskedLM SqueezeBertForQuestionAnswering SqueezeBertForSequenceClassification
        SqueezeBertModel StableLmModel Starcoder2Model Swin2SRForImageSuperResolution Swin2SRModel
        SwinForImageClassification SwinModel TableTransformerForObjectDetection TableTransformerModel
        UniSpeechForCTC UniSpeechForSequenceClassification UniSpeechModel
        UniSpeechSatForAudioFrameClassification UniSpeechSatForCTC UniSpeechSatForSequenceClassification
        UniSpeechSatModel VaultGemmaModel ViTForImageClassification ViTMAEModel ViTMSNForImageClassification
        ViTMSNModel ViTModel VitMatteForImageMatting VitPoseForPoseEstimation VitsModel Wav2Vec2BertForCTC
        Wav2Vec2BertForSequenceClassification Wav2Vec2BertModel Wav2Vec2ForAudioFrameClassification
        Wav2Vec2ForCTC Wav2Vec2ForSequenceClassification Wav2Vec2Model WavLMForAudioFrameClassification
        WavLMForCTC WavLMForSequenceClassification WavLMForXVector WavLMModel XLMForQuestionAnswering
        XLMForSequenceClassification XLMForTokenClassification XLMModel XLMRobertaForMaskedLM
        XLMRobertaForQuestionAnswering XLMRobertaForSequenceClassification XLMRobertaForTokenClassification
        XLMRobertaModel XLMWithLMHeadModel YolosForObjectDetection YolosModel YoutuModel ZayaModel
    """,
    DECODER: """
        AfmoeForCausalLM ApertusForCausalLM ArceeForCausalLM BloomForCausalLM CodeGenForCausalLM
        Cohere2ForCausalLM CohereForCausalLM DeepseekV3ForCausalLM DeepseekV4ForCausalLM Ernie4_5ForCausalLM
        FalconForCausalLM FalconH1ForCausalLM GPT2LMHeadModel GPTBigCodeForCausalLM GPTJForCausalLM
        GPTNeoForCausalLM GPTNeoXForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM Gemma3nForCausalLM
        Gemma4ForCausalLM GemmaForCausalLM GlmForCausalLM GlmMoeDsaForCausalLM GptOssForCausalLM
        GraniteForCausalLM GraniteMoeHybridForCausalLM HeliumForCausalLM HrmTextForCausalLM
        HunYuanDenseV1ForCausalLM Lfm2ForCausalLM Lfm2MoeForCausalLM Llama4ForCausalLM LlamaForCausalLM
        MBartForCausalLM Ministral3ForCausalLM MinistralForCausalLM Mistral4ForCausalLM MistralForCausalLM
        ModernBertDecoderForCausalLM MptForCausalLM NanoChatForCausalLM NemotronHForCausalLM OPTForCausalLM
        Olmo2ForCausalLM Olmo3ForCausalLM OlmoForCausalLM OlmoHybridForCausalLM Phi3ForCausalLM PhiForCausalLM
        Qwen2ForCausalLM Qwen2MoeForCausalLM Qwen3ForCausalLM Qwen3MoeForCausalLM Qwen3NextForCausalLM
        Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM SmolLM3ForCausalLM SolarOpenForCausalLM StableLmForCausalLM
        Starcoder2ForCausalLM TrOCRForCausalLM VaultGemmaForCausalLM YoutuForCausalLM ZayaForCausalLM
    """,
    ENCODER_DECODER: """
        BartForConditionalGeneration BlenderbotForConditionalGeneration BlenderbotSmallForConditionalGeneration
        CohereAsrForConditionalGeneration LongT5ForConditionalGeneration M2M100ForConditionalGeneration
        MBartForConditionalGeneration MT5ForConditionalGeneration MarianMTModel
        MoonshineForConditionalGeneration SpeechT5ForSpeechToText SpeechT5ForTextToSpeech
        T5ForConditionalGeneration VisionEncoderDecoderModel WhisperForConditionalGeneration
    """,
    Sessions(("encoder_model", "decoder_model_merged"), generates=False): """
        BartModel BlenderbotModel BlenderbotSmallModel CohereAsrModel LongT5Model M2M100Model MBartModel
        MT5Model MarianModel T5Model WhisperModel
    """,
    Sessions(("encoder_model", "decoder_model"), generates=False): """
        DacModel MimiModel
    """,
    Sessions(("vision_encoder", "prompt_encoder_mask_decoder"), generates=False): """
        EdgeTamModel Sam2Model Sam3TrackerModel SamModel
    """,
    SEEING: """
        Florence2ForConditionalGeneration Gemma3ForConditionalGeneration GlmOcrForConditionalGeneration
        Idefics3ForConditionalGeneration Lfm2VlForConditionalGeneration LightOnOcrForConditionalGeneration
        LlavaForConditionalGeneration LlavaOnevisionForConditionalGeneration Mistral3ForConditionalGeneration
        PaliGemmaForConditionalGeneration Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration
        Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration Qwen3_5ForConditionalGeneration
        Qwen3_5MoeForConditionalGeneration SmolVLMForConditionalGeneration
    """,
    SEEING_AND_HEARING: """
        Gemma3nForConditionalGeneration Gemma4ForConditionalGeneration
    """,
    HEARING: """
        GraniteSpeechForConditionalGeneration VoxtralForConditionalGeneration
        VoxtralRealtimeForConditionalGeneration
    """,
    Sessions(("text_encoder", "decoder_model_merged", "encodec_decode"), generates=True): """
        MusicgenForConditionalGeneration
    """,
}
SESSIONS = {name: sessions for sessions, names in _NAMES.items() for name in names.split()}
# What classes give to encoders of pictures and sound.
_MEDIA = {
    "pixel_values": """
        Florence2ForConditionalGeneration Gemma3ForConditionalGeneration LightOnOcrForConditionalGeneration
        LlavaForConditionalGeneration LlavaOnevisionForConditionalGeneration Mistral3ForConditionalGeneration
        PaliGemmaForConditionalGeneration
    """,
    "pixel_values pixel_attention_mask": """
        Idefics3ForConditionalGeneration SmolVLMForConditionalGeneration
    """,
    "pixel_values pixel_attention_mask spatial_shapes": """
        Lfm2VlForConditionalGeneration
    """,
    "pixel_values image_grid_thw": """
        GlmOcrForConditionalGeneration Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration
        Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration Qwen3_5ForConditionalGeneration
        Qwen3_5MoeForConditionalGeneration
    """,
    "pixel_values input_features input_features_mask": """
        Gemma3nForConditionalGeneration
    """,
    "pixel_values image_position_ids input_features input_features_mask": """
        Gemma4ForConditionalGeneration
    """,
    "input_features": """
        GraniteSpeechForConditionalGeneration
    """,
    "audio_values": """
        VoxtralForConditionalGeneration
    """,
}
MEDIA = {name: frozenset(given.split()) for given, names in _MEDIA.items() for name in names.split()}
# Those of them that the encoder gets under another name.
RENAMED = {
    "Gemma4ForConditionalGeneration": {"image_position_ids": "pixel_position_ids"},
    "Qwen2VLForConditionalGeneration": {"image_grid_thw": "grid_thw"},
}
